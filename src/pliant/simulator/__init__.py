"""Replays traces through the same cycle and the same policies as pliantd, on a simulated cluster.

::

    traces/     what a file says: SWF, sacct, the CSVs of published traces
"""
