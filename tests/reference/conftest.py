"""Every rule is checked on both implementations."""

import pytest

from .case import play_core, play_reference


@pytest.fixture(params=[play_reference, play_core], ids=["reference", "core"])
def play(request):
    """An implementation: (graph, cluster, cost, device, priority, transfer_priority) -> figures."""
    return request.param
