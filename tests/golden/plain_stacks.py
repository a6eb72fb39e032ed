"""Writes plain_stacks.json beside it: losses of plain stacks trained by PyTorch on the CPU, one job a key.

The runner's first parameters, samples and labels come from a counter-based generator, which is repeated here, so both
start from the same numbers. Ranks are played in turn: the gradient of a step is the mean of the ranks' gradients, as
data-parallel training takes it. Written with PyTorch 1.13.0 and NumPy 1.24.2 (Debian 12's python3-torch).

    python3 tests/golden/plain_stacks.py
"""
import json
import pathlib

import numpy as np
import torch

SEED = 42
FEATURES, LABELS = 1 << 62, (1 << 62) + 1  # streams of random numbers


def mix(x):
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def random_bits(stream, count):
    with np.errstate(over="ignore"):
        start = mix(np.array([SEED], dtype=np.uint64))
        return mix(mix(start ^ np.uint64(stream)) ^ np.arange(count, dtype=np.uint64))


def uniform(stream, count, fan_in):
    grid = ((random_bits(stream, count) >> np.uint64(40)).astype(np.int64) - (1 << 23)).astype(np.float32)
    return grid * np.float32(2.0**-23) * np.float32(1 / np.sqrt(fan_in))


def normal(rows, columns):
    bits = random_bits(FEATURES, rows * columns)
    u = ((bits >> np.uint64(32)).astype(np.float64) + 0.5) / 2**32
    v = ((bits & np.uint64(0xFFFFFFFF)).astype(np.float64) + 0.5) / 2**32
    return (np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)).astype(np.float32).reshape(rows, columns)


ACTIVATIONS = {"relu": torch.nn.ReLU, "gelu": torch.nn.GELU, "tanh": torch.nn.Tanh}
OPTIMIZERS = {
    "sgd": lambda p, lr: torch.optim.SGD(p, lr=lr),
    "sgd_momentum": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9),
    "adam": lambda p, lr: torch.optim.Adam(p, lr=lr),
    "adamw": lambda p, lr: torch.optim.AdamW(p, lr=lr, weight_decay=0.01),
}


def build(layers):
    modules, stream = [], 0
    for layer in layers:
        fan_in, fan_out = layer["linear"]
        linear = torch.nn.Linear(fan_in, fan_out, bias=layer.get("bias", True))
        for parameter in linear.parameters():
            values = uniform(stream, parameter.numel(), fan_in).reshape(parameter.shape)
            parameter.data = torch.from_numpy(values.copy())
            stream += 1
        modules.append(linear)
        if layer.get("activation", "none") != "none":
            modules.append(ACTIVATIONS[layer["activation"]]())
    return torch.nn.Sequential(*modules)


def train(job):
    rows, columns = job["rows"], job["layers"][0]["linear"][0]
    classes = job["layers"][-1]["linear"][1]
    features = torch.from_numpy(normal(rows, columns))
    if job["loss"] == "mse":
        targets, loss_of = features, torch.nn.functional.mse_loss
    else:
        targets = torch.from_numpy((random_bits(LABELS, rows) % np.uint64(classes)).astype(np.int64))
        loss_of = torch.nn.functional.cross_entropy
    model = build(job["layers"])
    optimizer = OPTIMIZERS[job["optimizer"]](model.parameters(), job["learning_rate"])
    ranks, size = job["ranks"], job["micro_batch_size"]
    steps = -(-len(range(0, rows, ranks)) // size)
    losses = []
    for _ in range(job["epochs"]):
        for step in range(steps):
            optimizer.zero_grad()
            total = 0.0
            for rank in range(ranks):
                mine = torch.arange(rank, rows, ranks)[step * size : (step + 1) * size]
                if len(mine) == 0:
                    continue
                loss = loss_of(model(features[mine]), targets[mine])
                (loss / ranks).backward()
                total += loss.item() * len(mine)
            seen = sum(len(range(rank, rows, ranks)[step * size : (step + 1) * size]) for rank in range(ranks))
            losses.append(total / seen)
            optimizer.step()
    return losses


TUTORIAL = {
    "layers": [{"linear": [100, 100]}, {"linear": [100, 100]}],
    "loss": "mse",
    "rows": 1000,
    "micro_batch_size": 32,
    "epochs": 10,
    "optimizer": "sgd",
    "learning_rate": 0.01,
    "ranks": 1,
}
JOBS = {
    "tutorial, 1 rank": TUTORIAL,
    "tutorial, 3 ranks": {**TUTORIAL, "ranks": 3},
    "tutorial, 4 ranks, adam": {**TUTORIAL, "ranks": 4, "optimizer": "adam", "learning_rate": 0.001},
    "deep, 2 ranks, momentum": {
        "layers": [
            {"linear": [33, 47], "activation": "gelu"},
            {"linear": [47, 21], "bias": False, "activation": "tanh"},
            {"linear": [21, 33], "activation": "relu"},
            {"linear": [33, 33]},
        ],
        "loss": "mse",
        "rows": 101,
        "micro_batch_size": 16,
        "epochs": 5,
        "optimizer": "sgd_momentum",
        "learning_rate": 0.02,
        "ranks": 2,
    },
    "classifier, 2 ranks, adamw": {
        "layers": [{"linear": [20, 30], "activation": "relu"}, {"linear": [30, 7]}],
        "loss": "cross_entropy",
        "rows": 201,
        "micro_batch_size": 32,
        "epochs": 10,
        "optimizer": "adamw",
        "learning_rate": 0.01,
        "ranks": 2,
    },
}

if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    jobs = [{"name": name, **job, "losses": [round(loss, 8) for loss in train(job)]} for name, job in JOBS.items()]
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text(json.dumps({"script": path.with_suffix(".py").name, "jobs": jobs}, indent=1) + "\n")
