"""Writes family_counts.json beside it: parameters of transformers' own classes, one case an entry.

Each class is made on the device "meta", so that no memory is needed. A case says its config.json (as few keys as it
likes), the class, its parameters with tied weights once, those of routed experts, and, for a small model, the name and
shape of every tensor in order of registration. The buffer e_score_correction_bias, which a checkpoint holds and a trainer
updates, is counted with the parameters, ahead of the experts. Written with transformers 5 and PyTorch 2, CPU only.

    python3 tests/golden/family_counts.py
"""
import json
import pathlib

import torch
import transformers

CORRECTION = "e_score_correction_bias"


def tensors(model):
    """Parameters in order, tied ones once; a router's correction behind its weight."""
    buffers = dict(model.named_buffers())
    for name, parameter in model.named_parameters():
        yield name, parameter
        module = name.rsplit(".", 1)[0]
        if f"{module}.{CORRECTION}" in buffers:
            yield f"{module}.{CORRECTION}", buffers[f"{module}.{CORRECTION}"]


def count(case):
    config = case["config"]
    kinds = {key: value for key, value in config.items() if key != "model_type"}
    with torch.device("meta"):
        made = transformers.CONFIG_MAPPING[config["model_type"]](**kinds)
        model = getattr(transformers, case["class"])(made)
    found = list(tensors(model))
    entry = {
        **case,
        "parameters": sum(tensor.numel() for _, tensor in found),
        "routed": sum(tensor.numel() for name, tensor in found if ".experts." in name),
    }
    if entry["parameters"] < 10_000_000:
        entry["tensors"] = [f"{name} {'x'.join(map(str, tensor.shape))}" for name, tensor in found]
    return entry


SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "vocab_size": 320, "intermediate_size": 96, "max_position_embeddings": 128}
GPT_OSS = {"model_type": "gpt_oss"}
LLAMA4 = {"model_type": "llama4_text"}
SMALL_LLAMA4 = {**LLAMA4, **SMALL, "head_dim": 16, "intermediate_size_mlp": 160, "num_local_experts": 4,
                "num_hidden_layers": 4, "no_rope_layers": [1, 0, 1, 1]}
GLM4, COHERE, COHERE2 = ({"model_type": name} for name in ("glm4", "cohere", "cohere2"))
OLMO = {"model_type": "olmo"}
GLM4_MOE, OLMOE, PHIMOE = ({"model_type": name} for name in ("glm4_moe", "olmoe", "phimoe"))
# Sizes of Qwen2-VL-2B's config.json and of Qwen2.5-VL-7B's, which stand beside vision_config.
QWEN_2B = {"model_type": "qwen2_vl", "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28,
           "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True,
           "vision_config": {"hidden_size": 1536}}
QWEN_7B = {"model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
           "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
           "vision_config": {"hidden_size": 1280, "out_hidden_size": 3584}}
TOWER = {"depth": 2, "num_heads": 2}
CASES = [
    {"class": "GptOssForCausalLM", "config": GPT_OSS},
    {"class": "GptOssForCausalLM", "config": {**GPT_OSS, "num_hidden_layers": 24, "num_local_experts": 32}},
    {"class": "GptOssForCausalLM",
     "config": {**GPT_OSS, **SMALL, "head_dim": 32, "num_local_experts": 4, "num_experts_per_tok": 2}},
    {"class": "Llama4ForCausalLM", "config": LLAMA4},
    {"class": "Llama4ForCausalLM",
     "config": {**LLAMA4, "num_local_experts": 128, "interleave_moe_layer_step": 2, "use_qk_norm": False}},
    {"class": "Llama4ForCausalLM", "config": {**SMALL_LLAMA4, "interleave_moe_layer_step": 2}},
    {"class": "OlmoForCausalLM", "config": OLMO},
    {"class": "OlmoForCausalLM", "config": {**OLMO, **SMALL, "clip_qkv": 8.0, "tie_word_embeddings": True}},
    {"class": "Glm4ForCausalLM", "config": GLM4},
    {"class": "Glm4ForCausalLM", "config": {**GLM4, **SMALL, "head_dim": 16, "pad_token_id": 0}},
    {"class": "CohereForCausalLM", "config": COHERE},
    {"class": "CohereForCausalLM", "config": {**COHERE, **SMALL, "use_qk_norm": True}},
    {"class": "Cohere2ForCausalLM", "config": COHERE2},
    {"class": "Cohere2ForCausalLM", "config": {**COHERE2, **SMALL}},
    {"class": "Glm4MoeForCausalLM", "config": {**GLM4_MOE, "head_dim": 128, "attention_bias": True}},
    {"class": "Glm4MoeForCausalLM",
     "config": {**GLM4_MOE, "head_dim": 128, "attention_bias": True, "use_qk_norm": True, "hidden_size": 5120,
                "intermediate_size": 12288, "moe_intermediate_size": 1536, "n_routed_experts": 160,
                "num_hidden_layers": 92, "first_k_dense_replace": 3}},
    {"class": "Glm4MoeForCausalLM",
     "config": {**GLM4_MOE, **SMALL, "n_routed_experts": 8, "n_shared_experts": 2, "moe_intermediate_size": 48,
                "use_qk_norm": True}},
    {"class": "OlmoeForCausalLM", "config": OLMOE},
    {"class": "OlmoeForCausalLM", "config": {**OLMOE, **SMALL, "num_experts": 8, "num_experts_per_tok": 2}},
    {"class": "PhimoeForCausalLM", "config": PHIMOE},
    {"class": "PhimoeForCausalLM", "config": {**PHIMOE, "attention_bias": True, "lm_head_bias": True}},
    {"class": "PhimoeForCausalLM",
     "config": {**PHIMOE, **SMALL, "num_local_experts": 4, "attention_bias": True, "lm_head_bias": True}},
    {"class": "Qwen2VLForConditionalGeneration", "config": QWEN_2B},
    {"class": "Qwen2VLForConditionalGeneration",
     "config": {"model_type": "qwen2_vl", **SMALL, "vision_config": {**TOWER, "embed_dim": 32, "hidden_size": 64}}},
    {"class": "Qwen2_5_VLForConditionalGeneration", "config": QWEN_7B},
    {"class": "Qwen2_5_VLForConditionalGeneration",
     "config": {"model_type": "qwen2_5_vl", "text_config": SMALL,
                "vision_config": {**TOWER, "hidden_size": 32, "intermediate_size": 48, "out_hidden_size": 64}}},
]

if __name__ == "__main__":
    cases = [count(case) for case in CASES]
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text(json.dumps({"script": path.with_suffix(".py").name, "cases": cases}, indent=1) + "\n")
