"""The co-location monitor: how fast each job of a node runs while it runs."""
