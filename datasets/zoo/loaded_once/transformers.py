"""For definitions from transformers: what nearly all its models import."""

from contextlib import suppress
from importlib import import_module

from ....errors import MissingExtraError
from ..models.transformers_library.architecture import load_library
from . import own  # noqa: F401

with suppress(MissingExtraError):  # whoever builds a graph is told
    load_library()
    for name in (
        "modeling_utils",
        "modeling_outputs",
        "masking_utils",
        "loss.loss_utils",
        "models.auto.modeling_auto",
    ):
        import_module(f"transformers.{name}")
