"""How Fujiwara et al. (paper 000) say things of a figure over sizes, and whether ours agree."""

from __future__ import annotations

from collections.abc import Mapping

from pliant.simulator.reproduce.claims import Claim, is_about, percent

ALMOST = 0.1
"""What differs by no more is "almost the same", "comparable" or "similar"."""

Sizes = Mapping[int, float]
"""A relative change, or a figure, by the number of GPUs or CPUs."""


def by_size(found: Sizes) -> str:
    """Return changes, size by size."""
    return ", ".join(f"{signed(change)} ({size})" for size, change in found.items())


def signed(change: float) -> str:
    """Return a change in per cent with its sign."""
    return ("+" if change > 0 else "") + percent(change, 1).replace("-0.0 %", "0.0 %")


def at_least(text: str, bound: float, found: Sizes, where: str, why: str) -> Claim:
    """Claim that something is lower by at least so much everywhere."""
    holds = max(found.values()) <= -bound
    return _claim(text, f"-{percent(bound, 1)} at least", f"{by_size(found)}; {where}", holds, why)


def up_to(text: str, bound: float, found: Sizes, where: str, why: str) -> Claim:
    """Claim that something is lower by up to about so much."""
    holds = is_about(-min(found.values()), bound)
    return _claim(text, f"up to -{percent(bound, 1)}", f"{by_size(found)}; {where}", holds, why)


def lower(text: str, paper: str, found: Sizes, where: str, why: str) -> Claim:
    """Claim that something is lower everywhere."""
    return _claim(text, paper, f"{by_size(found)}; {where}", max(found.values()) < 0, why)


def alike(text: str, paper: str, found: Sizes, where: str, why: str) -> Claim:
    """Claim that something is almost the same everywhere."""
    holds = all(abs(change) <= ALMOST for change in found.values())
    return _claim(text, paper, f"{by_size(found)}; {where}", holds, why)


def not_above(text: str, paper: str, found: Sizes, where: str, why: str) -> Claim:
    """Claim that something is lower, or almost the same, everywhere."""
    holds = all(change <= ALMOST for change in found.values())
    return _claim(text, paper, f"{by_size(found)}; {where}", holds, why)


def not_below(text: str, paper: str, found: Sizes, where: str, why: str) -> Claim:
    """Claim that something is higher, or almost the same, everywhere."""
    holds = all(change >= -ALMOST for change in found.values())
    return _claim(text, paper, f"{by_size(found)}; {where}", holds, why)


def higher(text: str, paper: str, found: Sizes, where: str, why: str) -> Claim:
    """Claim that something is higher everywhere."""
    return _claim(text, paper, f"{by_size(found)}; {where}", min(found.values()) > 0, why)


def _claim(text: str, paper: str, ours: str, holds: bool, why: str) -> Claim:
    return Claim(text, "predicted", paper, ours, holds, "" if holds else why)
