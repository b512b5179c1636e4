"""Fujiwara et al. (paper 000), section V: its claims, and by which seeds and choices they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pliant.simulator.reproduce.claims import Claim, Table
from pliant.simulator.reproduce.fujiwara_flow import flow_claims
from pliant.simulator.reproduce.fujiwara_gpus import Gpus, Seen
from pliant.simulator.reproduce.fujiwara_stretch import stretch_claims
from pliant.simulator.reproduce.fujiwara_used import overhead_claims, used_claims


def gpu_claims(gpus: Gpus) -> tuple[list[Claim], Table]:
    """Return what the text says of figures 3 to 5, and for each claim who else says so.

    Each claim is asked again of every seed alone, and of every other choice of the curves and of
    the trace: what depends on them is not the policies' doing.
    """
    seeds = [_claims(seen) for seen in gpus.chosen.by_seed()]
    choices = [_claims(seen) for seen in gpus.varied]
    rows = []
    claims = []
    for place, claim in enumerate(_claims(gpus.chosen)):
        by_seed = [bool(of[place].holds) for of in seeds]
        by_choice = [bool(of[place].holds) for of in choices]
        rows.append([claim.text, *map(_of, (by_seed, by_choice)), *map(_sign, by_choice)])
        claims.append(claim if claim.holds else _told(claim, by_seed, by_choice, gpus))
    columns = ["seeds", "choices", *(seen.choice.text for seen in gpus.varied)]
    varied = gpus.varied[0].all.text
    note = f"Of how many seeds each alone it holds, and with which choices, on {varied}."
    return claims, Table("The claims by seed and by choice", ["claim", *columns], rows, note)


def _claims(seen: Seen) -> list[Claim]:
    return [
        *used_claims(seen),
        *flow_claims(seen),
        *overhead_claims(seen),
        *stretch_claims(seen),
    ]


def _told(claim: Claim, by_seed: list[bool], by_choice: list[bool], gpus: Gpus) -> Claim:
    """Say besides by which seeds and choices a claim holds that does not."""
    varied = gpus.varied[0].all
    names = [seen.choice.text for seen, holds in zip(gpus.varied, by_choice, strict=True) if holds]
    words = f"{claim.why} [holds for {_of(by_seed)} seeds alone, {_of(by_choice)} choices"
    with_ = f": {' | '.join(names)}" if names else ""
    return replace(claim, why=f"{words} with {varied.tasks:,} tasks{with_}]")


def _of(held: Sequence[bool]) -> str:
    return f"{sum(held)} of {len(held)}"


def _sign(held: bool) -> str:
    return "yes" if held else "no"
