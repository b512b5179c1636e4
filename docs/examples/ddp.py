"""PyTorch DDP under torchrun, as many processes as the job has GPUs: by nccl, on CPUs by gloo.

usage: pliant run -- torchrun --standalone --nproc-per-node=$SLURM_GPUS_ON_NODE \\
           ddp.py STEPS [SECONDS A STEP]

The batch of a step is the same at every world size, and each process takes its part of it. So the
losses, one line for each step, are the same however often the job was resized, but for rounding:
floats are added in another order.
"""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import pliant

BATCH = 64


def own_device():
    """This process's GPU; the CPU where there is not one for each process, as in a sandbox."""
    if torch.cuda.device_count() < int(os.environ["LOCAL_WORLD_SIZE"]):
        return torch.device("cpu")
    own = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(own)  # also where checkpoint_wanted_everywhere() asks the others
    return own


def part(step, rank, world):
    """This process's part of a step's batch, which is drawn by the step alone."""
    draw = torch.Generator().manual_seed(step)
    inputs = torch.randn(BATCH, 16, generator=draw)
    targets = inputs.sin().sum(dim=1, keepdim=True)
    return inputs[rank::world], targets[rank::world]


def save(path, step, model, optimizer):
    """Write a whole checkpoint or none."""
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    new = path.with_suffix(".new")
    torch.save(state, new)
    new.replace(path)


def load(path, model, optimizer):
    """Take up the last checkpoint; return its step, 0 at the first start."""
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def main(last, step_s):
    own = own_device()
    dist.init_process_group("gloo" if own.type == "cpu" else "nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    path = Path(os.environ.get("PLIANT_CHECKPOINT_DIR", ".")) / "ddp.pt"
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1)).to(own)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    step = load(path, model, optimizer)
    parallel = DistributedDataParallel(model)
    if rank == 0:
        print(f"world size {world}, from step {step}", flush=True)
    while step < last:
        time.sleep(step_s)
        inputs, targets = (each.to(own) for each in part(step, rank, world))
        # DDP averages gradients over the processes: from the sums of their parts that makes the
        # gradient of the batch's mean, also where one part is a row longer.
        squares = nn.functional.mse_loss(parallel(inputs), targets, reduction="sum")
        optimizer.zero_grad()
        (squares * world / BATCH).backward()
        optimizer.step()
        step += 1
        pliant.heartbeat(step)
        loss = squares.detach() / BATCH
        dist.all_reduce(loss)
        if rank == 0:
            print(step, f"{loss.item():.6f}", flush=True)
        # All processes ask, at the same step, and all get the same answer.
        if pliant.checkpoint_wanted_everywhere() and step < last:
            if rank == 0:
                save(path, step, model, optimizer)
            pliant.checkpointed()  # waits until all have come here: none ends before it is saved
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
