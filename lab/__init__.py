"""What proves and shows the platform: the demo, the simulation, experiments on its guarantees, and a fault proxy."""
