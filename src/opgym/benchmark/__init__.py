"""Measures the simulator: against graph sorts and a plain Python implementation, in the same run."""
