"""Where shapes fit: what is free *for a job*, now and later."""

from pliant.placement.cells import Cell
from pliant.placement.free import Free
from pliant.placement.needs import Need
from pliant.placement.profiles import Option, Profile
from pliant.placement.scopes import NO_LIMIT_S, is_open, limit_s
from pliant.placement.taken import Taken
from pliant.placement.tiers import Tiers
from pliant.placement.words import why_not

__all__ = [
    "NO_LIMIT_S",
    "Cell",
    "Free",
    "Need",
    "Option",
    "Profile",
    "Taken",
    "Tiers",
    "is_open",
    "limit_s",
    "why_not",
]
