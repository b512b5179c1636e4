"""The simulator's benchmark: ``make bench-sim DATA=DIR`` writes docs/benchmarks-sim.md.

Every point is measured in a process of its own, which prints one line of JSON: see
:mod:`benchmarks.sim.points` for ours and :mod:`benchmarks.sim.accasim_run` for AccaSim's.
"""
