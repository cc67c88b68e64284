"""REGAL beside its baselines: ``opgym reproduce regal``; and the limit of its capped task."""
