"""What policies would have done to a month that a real cluster has behind it.

``cluster``: the site's nodes and partitions; ``molding``: what its jobs are taken to allow;
``month``: both as a workload; ``result``: what came out, and for whom; ``words``: what was assumed.
"""
