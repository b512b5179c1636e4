"""A Request back to text, in one form only."""

from __future__ import annotations

from fractions import Fraction

from pliant.grammar.values import place
from pliant.model import ALL_CORES, Malleable, Request, shape_text


def _amount_text(amount: Fraction) -> str:
    return str(amount.numerator) if amount >= 1 else f"1/{amount.denominator}"


def _list_text(values: tuple[Fraction, ...]) -> str:
    """Write values as ranges where they run on without a gap."""
    runs: list[list[Fraction]] = []
    for value in values:
        if runs and place(value) == place(runs[-1][-1]) + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ":".join(
        _amount_text(run[0]) + (f"-{_amount_text(run[-1])}" if len(run) > 1 else "") for run in runs
    )


def _size_text(mib: int) -> str:
    return f"{mib // 1024}G" if mib % 1024 == 0 else f"{mib}M"


def _number_text(number: float) -> str:
    return f"{number:.9f}".rstrip("0").rstrip(".")


def _moldable_text(request: Request) -> str:
    words = {
        "gpus": _list_text(request.gpus),
        "nodes": _list_text(tuple(Fraction(n) for n in request.nodes)),
        "type": ":".join(request.kinds),
        "cores": "all" if request.cores == ALL_CORES else str(request.cores or ""),
        "gpu-type": ":".join(request.gpu_types),
        "gpu-mem": _size_text(request.gpu_mem_mib) if request.gpu_mem_mib else "",
    }
    return ",".join(f"{key}={value}" for key, value in words.items() if value)


def _malleable_text(malleable: Malleable) -> str:
    grace = f"grace={malleable.grace_s}s" if malleable.grace_s else ""
    signal = f"signal={malleable.signal}" if malleable.signal else ""
    stalled = "stalled=requeue" if malleable.requeues_stalled else ""
    most, least = malleable.max_resizes, malleable.min_run_s
    resizes = f"max-resizes={most}" if most is not None else ""
    runs = f"min-run={least}s" if least else ""
    path = f"checkpoint={malleable.checkpoint}" if malleable.checkpoint else ""
    words = (grace, signal, stalled, resizes, runs, path)
    value = ",".join(word for word in words if word)
    return f"malleable={value}" if value else "malleable"


def request_text(request: Request) -> str:
    """Write a request so that :func:`parse` reads the same back."""
    words = []
    if request.is_moldable:
        words.append(f"moldable={_moldable_text(request)}")
    if request.malleable is not None:
        words.append(_malleable_text(request.malleable))
    if request.job_class is not None:
        words.append(f"job-class={request.job_class}")
    if request.throughput:
        pairs = (f"{shape_text(s)}:{_number_text(f)}" for s, f in request.throughput)
        words.append(f"throughput={','.join(pairs)}")
    if request.steps:
        words.append(f"steps={request.steps}")
    if request.colocate is not None:
        words.append("colocate" if request.colocate else "colocate=no")
    return ";".join(words)
