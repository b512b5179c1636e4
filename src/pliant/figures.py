"""How figures are written for people: times as they say them, parts, GPU time."""

from __future__ import annotations


def number(value: float) -> str:
    """Write a figure with about four digits, and all digits before the point."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def percent(part: float | None) -> str:
    """Write by what part something changed: -0.1 is -10.0 %; None: ""."""
    return "" if part is None else f"{100 * part:+.1f} %"


def duration(seconds: float) -> str:
    """Write a time as people say it: 45 s, 12 min, 3 h 20 min, 2 d 4 h."""
    whole = max(0, round(seconds))
    if whole < 90:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 90 else _long(minutes)


def close_duration(seconds: float) -> str:
    """Write a time so that near ones can be told apart: 4.27 s, 1 min 54 s, 3 h 20 min, 2 d 4 h."""
    if seconds < 99.95:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return _long(round(seconds / 60))


def _long(minutes: int) -> str:
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def gpu_hours(gpu_s: float) -> str:
    """Write GPU time: 0.025 GPU-h, 3.1 GPU-h, 4711 GPU-h."""
    hours = gpu_s / 3600
    return f"{hours:.0f} GPU-h" if abs(hours) >= 100 else f"{hours:.2g} GPU-h"
