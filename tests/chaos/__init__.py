"""What a run directory survives: kills, power loss, faults of the disk; see `make chaos`."""
