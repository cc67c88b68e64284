"""What `opgym reproduce` runs: studies whose figures stand in the docs."""
