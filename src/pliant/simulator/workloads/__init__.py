"""Workloads of the papers and of traces, one module per source.

Each draws with a seed or reads a file whose path it is given, and says in ``Workload.choices`` what
its source leaves open and was chosen here.
"""
