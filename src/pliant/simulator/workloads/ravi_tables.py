"""The tables of Ravi et al.: what each application takes on CPUs, on GPUs, and on both.

Source: Ravi et al. (paper 004), figures 1, 2 and 8; what is made of them here says so.
"""

from __future__ import annotations

from typing import NamedTuple

from pliant.model import Kind


class Application(NamedTuple):
    """Seconds on one core, and the speedups on a GPU (GP) and on all cores (MP) over that."""

    name: str
    sequential_s: float
    gpu: float
    cores: float

    @property
    def prefers_gpu(self) -> bool:
        """Whether it is faster on a GPU."""
        return self.gpu > self.cores


LARGE = (
    Application("PDE Solver", 7.3, 4.7, 6.8),
    Application("Image Processing", 33.8, 5.1, 7.8),
    Application("FDTD", 8.4, 2.2, 7.6),
    Application("BlackScholes", 2.6, 2.1, 7.2),
    Application("Binomial Options", 11.8, 5.6, 4.2),
    Application("MonteCarlo", 45.4, 38.4, 7.9),
    Application("Kmeans", 330.0, 12.1, 7.8),
    Application("KNN", 67.3, 7.8, 6.2),
    Application("PCA", 142.0, 9.7, 5.6),
    Application("Molecular Dynamics", 46.6, 12.9, 7.9),
)
"""Figure 1: the large data sets."""

SMALL_PART = 1 / 8
SMALL_GPU = 0.63
"""A small data set is an eighth of the large one, and a GPU is used 0.63 times as well by it: from
0.612 to 0.645, 7 of the 10 applications are faster on the cores then, as the paper says."""
ITERATIONS = 30
TRANSFER = 0.3
"""Many iterations are 30 times as many, of which the GPU copies its data once: 0.3 of its time."""


def small(application: Application) -> Application:
    """Return an application with its small data set."""
    name, sequential_s, gpu, cores = application
    return Application(f"{name}, small", sequential_s * SMALL_PART, gpu * SMALL_GPU, cores)


def long(application: Application, iterations: int = ITERATIONS) -> Application:
    """Return an application with its large data set and many iterations."""
    name, sequential_s, gpu, cores = application
    faster = iterations / (TRANSFER + iterations * (1 - TRANSFER))
    return Application(f"{name}, long", sequential_s * iterations, gpu * faster, cores)


def pool(iterations: int = ITERATIONS) -> tuple[Application, ...]:
    """Return the pool of 30 jobs for one node: small, large, and large with many iterations."""
    return (*map(small, LARGE), *LARGE, *(long(one, iterations) for one in LARGE))


POOL = pool()

KINDS = (Kind.CPU, Kind.GPU, Kind.BOTH)
"""The columns of figure 2."""
Times = dict[tuple[str, str], dict[int, tuple[float, float, float]]]

MULTI: Times = {
    ("GK", "680 MB"): {2: (314, 311, 221), 4: (179, 173, 123), 8: (103, 99, 65)},
    ("GK", "2.7 GB"): {2: (1280, 1152, 703), 4: (638, 591, 370), 8: (338, 301, 188)},
    ("EM", "450 MB"): {2: (109, 39, 37), 4: (55, 19, 18), 8: (28, 9, 8)},
    ("EM", "900 MB"): {2: (215, 74, 73), 4: (106, 36, 33), 8: (54, 18, 16)},
    ("PR", "900 MB"): {2: (6.5, 1.1, 0.9), 4: (3.3, 0.6, 0.5), 8: (1.8, 0.3, 0.38)},
    ("PR", "3.6 GB"): {2: (26, 4.1, 3.4), 4: (13, 2.3, 1.8), 8: (8.2, 1.3, 1.2)},
}
"""Figure 2: seconds on CPUs, on GPUs, and on both, by nodes."""

PAGERANK_S = (0.38, 0.28)
"""PageRank, 900 MB, on the CPUs and GPUs of 8 nodes: as printed, and as it probably was measured.
Printed, it is slower than on GPUs alone, against all other rows."""


class Asked(NamedTuple):
    """A job of the pool of 18: what, and on how many nodes."""

    application: str
    data: str
    nodes: int

    @property
    def both_s(self) -> float:
        """Its run time on the CPUs and GPUs of the nodes that it asks."""
        return MULTI[self.application, self.data][self.nodes][2]


POOL_OF_18 = tuple(Asked(*name, nodes) for name, times in MULTI.items() for nodes in times)

SHARING_PENALTY: dict[tuple[str, str], float] = {
    ("EM", "GK"): 0.043,
    ("EM", "PR"): 0.068,
    ("PR", "GK"): 0.024,
}
"""Figure 8: how much longer both run, by the application on the CPUs and that on the GPUs."""


def sharing_penalty(on_cpus: str, on_gpus: str) -> float:
    """Return how much longer two jobs run on the same nodes, one on CPUs and one on GPUs.

    By their names (``EM 450 MB``). For the pairs that figure 8 has not, the mean of those it has.
    """
    known = SHARING_PENALTY.get((on_cpus.split(maxsplit=1)[0], on_gpus.split(maxsplit=1)[0]))
    return sum(SHARING_PENALTY.values()) / len(SHARING_PENALTY) if known is None else known
