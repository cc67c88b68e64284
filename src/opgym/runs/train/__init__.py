"""One training in one folder: settings, problems, checkpoints, result."""
