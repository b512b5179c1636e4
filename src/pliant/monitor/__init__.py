"""The co-location monitor: how fast each job on this node runs, and what it uses."""
