#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nproc_per_node 8 pretrain_gpt.py \
    --tensor-model-parallel-size 2 --sequence-parallel \
    --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --vocab-size 50257 \
    --seq-length 4096 --max-position-embeddings 4096 \
    --micro-batch-size 2 --global-batch-size 64 \
    --use-distributed-optimizer --optimizer-cpu-offload --bf16 --lr 1e-4
