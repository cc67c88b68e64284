"""The zoo: training and inference graphs of real networks, shipped as files with a manifest."""
