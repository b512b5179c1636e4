"""What `make bench` measures; each module says how. The results stand in docs/benchmarks.md."""
