"""Readers of traces: each line that cannot be right is refused with its number and the reason."""

from pliant.simulator.traces.gpus import read_gpus
from pliant.simulator.traces.lines import Record, trace_lines
from pliant.simulator.traces.sacct import read_sacct
from pliant.simulator.traces.sacct_json import read_sacct_json
from pliant.simulator.traces.swf import read_swf

__all__ = ["Record", "read_gpus", "read_sacct", "read_sacct_json", "read_swf", "trace_lines"]
