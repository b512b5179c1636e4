"""Decisions that make no difference where they are taken out, each with the reason for it."""

from __future__ import annotations

from collections.abc import Mapping

UNNEEDED: Mapping[str, str] = {}
