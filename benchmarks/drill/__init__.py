"""Hand-overs on a real Slurm into which faults are injected, run by run, over several sittings."""
