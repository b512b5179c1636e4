#!/bin/bash
#SBATCH --nodes=1 --gres=gpu:4 --cpus-per-gpu=4 --time=1:00:00 --open-mode=append
#SBATCH --moldable=gpus=1-4
#SBATCH --malleable=grace=2m
exec pliant run -- torchrun --standalone --nproc-per-node="$SLURM_GPUS_ON_NODE" \
    lightning_ranks.py "$@"
