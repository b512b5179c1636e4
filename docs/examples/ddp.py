"""PyTorch DDP under torchrun whose world size follows the allocation.

usage, one node:      pliant run -- torchrun --nproc-per-node=$SLURM_GPUS_ON_NODE ddp.py 2000
       several nodes: srun --ntasks-per-node=1 pliant run -- torchrun --nnodes=$SLURM_NNODES \\
                          --nproc-per-node=$SLURM_GPUS_ON_NODE --rdzv-backend=c10d \\
                          --rdzv-endpoint=$(hostname):29500 ddp.py 2000

The global batch is the same at every world size (each process takes its part of it), so the losses
are too, up to rounding. It uses gloo on CPUs; for GPUs: nccl, and model and tensors on the device
of LOCAL_RANK. torchrun ends with 1 whatever its workers ended with: pliant.checkpointed() also
leaves a word beside the exit code, so `pliant run` knows.
"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import pliant

BATCH = 64


def wanted_by_any():
    """Whether a checkpoint is wanted: all processes must see the same, at the same step."""
    flag = torch.tensor([1.0 if pliant.checkpoint_wanted() else 0.0])
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag.item())


def batch(step, rank, world):
    """This process's part of a step's batch, which is drawn by the step alone."""
    draw = torch.Generator().manual_seed(step)
    inputs = torch.randn(BATCH, 8, generator=draw)
    targets = inputs.sum(dim=1, keepdim=True)
    return inputs[rank::world], targets[rank::world]


def save(path, step, model, optimizer):
    """Write a whole checkpoint or none; by one process."""
    new = path.with_suffix(".new")
    torch.save(
        {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, new
    )
    new.replace(path)


def main(last):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    path = Path(os.environ.get("PLIANT_CHECKPOINT_DIR", ".")) / "ddp.pt"
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    if path.exists():
        saved = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    parallel = DistributedDataParallel(model)
    while step < last:
        inputs, targets = batch(step, rank, world)
        # parts may differ by one row: weighted so that the mean over processes is the batch's
        loss = nn.functional.mse_loss(parallel(inputs), targets) * len(inputs) * world / BATCH
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        pliant.heartbeat(step)
        if wanted_by_any():
            if rank == 0:
                save(path, step, model, optimizer)
            dist.barrier()
            pliant.checkpointed()
    if rank == 0:
        save(path, step, model, optimizer)
        print(step, f"{loss.item():.6f}" if last else "", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]))
