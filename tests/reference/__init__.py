"""The semantics of the simulator: cases worked by hand, and random instances for comparisons."""
