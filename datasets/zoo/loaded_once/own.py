"""For definitions of our own: what torch loads when it traces for the first time."""

import torch._dynamo  # noqa: F401
