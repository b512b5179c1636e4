"""PyTorch Lightning with several ranks, as many as the job has GPUs: by nccl, on CPUs by gloo.

usage: pliant run -- torchrun --standalone --nproc-per-node=$SLURM_GPUS_ON_NODE \\
           lightning_ranks.py STEPS [SECONDS A STEP]

The callback is all that Pliant needs. No signal is sent, so Lightning's own handlers are never
called: they save inside the handler, in each rank at another step, and the job hangs.
"""

import os
import sys
import time
from pathlib import Path

import pytorch_lightning as lightning
import torch
from torch import nn

import pliant

FOLDER = Path(os.environ.get("PLIANT_CHECKPOINT_DIR", "."))


class Resizable(lightning.Callback):
    """Saves with all ranks at the end of a step, where a checkpoint is wanted."""

    def on_train_batch_end(self, trainer, *_):
        step = trainer.global_step
        pliant.heartbeat(step)
        if trainer.is_global_zero:
            print(step, "of", trainer.max_steps, "world size", trainer.world_size, flush=True)
        if step < trainer.max_steps and pliant.checkpoint_wanted_everywhere():
            trainer.save_checkpoint(FOLDER / "new.ckpt")  # every rank: rank 0 writes
            if trainer.is_global_zero:
                (FOLDER / "new.ckpt").replace(FOLDER / "last.ckpt")
            pliant.checkpointed()  # every rank: it waits for the others


class Model(lightning.LightningModule):
    """Learns the sum of the sines of its inputs."""

    def __init__(self, step_s):
        super().__init__()
        self.step_s = step_s
        self.layers = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 1))

    def training_step(self, batch, _number):
        time.sleep(self.step_s)
        (inputs,) = batch
        targets = inputs.sin().sum(dim=1, keepdim=True)
        return nn.functional.mse_loss(self.layers(inputs), targets)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main(last, step_s):
    data = torch.utils.data.TensorDataset(torch.randn(64 * 100, 16))
    ranks = int(os.environ["LOCAL_WORLD_SIZE"])
    trainer = lightning.Trainer(
        # A sandbox has no real GPUs.
        accelerator="gpu" if torch.cuda.device_count() >= ranks else "cpu",
        devices=ranks,
        strategy="ddp",
        max_steps=last,
        callbacks=[Resizable()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    saved = FOLDER / "last.ckpt"
    trainer.fit(
        Model(step_s),
        torch.utils.data.DataLoader(data, batch_size=16),
        ckpt_path=saved if saved.exists() else None,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
