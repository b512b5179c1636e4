#!/bin/bash
#SBATCH --nodes=1 --gres=gpu:4 --time=1:00:00 --open-mode=append
#SBATCH --moldable=gpus=1-4
#SBATCH --malleable=grace=30s
exec pliant run -- python count.py "$@"
