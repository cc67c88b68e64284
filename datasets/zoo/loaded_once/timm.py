"""For definitions from timm."""

from contextlib import suppress

from ....errors import MissingExtraError
from ..models.timm_library.architecture import library
from . import own  # noqa: F401

with suppress(MissingExtraError):  # whoever builds a graph is told
    library()
