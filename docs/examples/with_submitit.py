"""submitit's own checkpointing, unchanged, in a job that may be resized.

usage: python with_submitit.py N FOLDER [SECONDS A STEP]       where jobs are submitted

submitit saves ``Count`` on the signal USR2, as it does before a time limit, and calls it again in
the next run. What makes the job malleable are the lines of ``main``. The heartbeat tells how fast
it is at each shape, and that it works: without one Pliant believes that after a minute.
"""

import os
import sys
import time

import submitit

import pliant

MODULUS = 2**61 - 1


class Count(submitit.helpers.Checkpointable):
    """Counts to N with a checksum over all steps; what it holds is what submitit saves."""

    def __init__(self):
        self.done = (0, 0)  # the last step and its checksum
        self.gpus = []  # what each run had

    def __call__(self, last, step_s=0.01):
        self.gpus = [*self.gpus, int(os.environ.get("SLURM_GPUS_ON_NODE", "0"))]
        step, checksum = self.done
        while step < last:
            time.sleep(step_s)
            step += 1
            checksum = (checksum * 31 + step) % MODULUS
            self.done = (step, checksum)  # at once: the signal may come between any two lines
            pliant.heartbeat(step)
        return *self.done, self.gpus


def main(last, folder, step_s):
    executor = submitit.AutoExecutor(
        folder, cluster="slurm", slurm_python=f"pliant run --signal USR2 -- {sys.executable}"
    )
    executor.update_parameters(
        timeout_min=60,
        gpus_per_node=4,
        slurm_additional_parameters={"moldable": "gpus=1-4", "malleable": "grace=2m"},
    )
    job = executor.submit(Count(), last, step_s)
    print(f"Submitted batch job {job.job_id}", flush=True)
    print(*job.result())


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]), words[1], float(words[2]) if len(words) > 2 else 0.01)
