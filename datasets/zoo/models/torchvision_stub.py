"""A stand-in for torchvision, for processes in which a graph is built from another library's network.

timm and transformers import names of torchvision when they are loaded: transforms of images, datasets, drawing. None
of it takes part in a forward pass. A torchvision that was built for another torch (its default wheel beside a CPU build
of torch, which is what ``pip install 'opgym[zoo]'`` gives on many machines) cannot be imported, and takes those
libraries down with it. The stand-in is used whether or not the real one works, so that the bytes of a graph do not hang
on it; and only where a graph of the zoo is built, which is in a process of its own.
"""

from __future__ import annotations

import enum
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

#: Modules that the libraries import names of.
MODULES = (
    "torchvision",
    "torchvision.datasets",
    "torchvision.io",
    "torchvision.ops",
    "torchvision.ops.boxes",
    "torchvision.ops.misc",
    "torchvision.transforms",
    "torchvision.transforms.functional",
    "torchvision.transforms.v2",
    "torchvision.transforms.v2.functional",
    "torchvision.utils",
)
#: Newer than any version that a library asks for: what is asked decides which names it imports, and all are there.
VERSION = "1.0.0"


class InterpolationMode(enum.Enum):
    """How images are resized; libraries make tables of it when they are loaded."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


class Absent:
    """What every other name stands for: a class to inherit from and to compare with, not to be used."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"torchvision's {type(self).__name__} is called while a graph of the zoo is built, where torchvision is a "
            "stand-in without contents; expected a network that needs nothing of it in its forward pass"
        )


class _Module(ModuleType):
    """A module of the stand-in."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what the import system and inspect ask for
            raise AttributeError(f"{self.__name__} has no {name}")
        value = InterpolationMode if name == "InterpolationMode" else type(name, (Absent,), {})
        setattr(self, name, value)
        return value


def install_torchvision_stub() -> None:
    """Puts the stand-in in the place of torchvision in this process, unless either is loaded already."""
    if "torchvision" in sys.modules:
        return
    for name in MODULES:
        module = _Module(name)
        module.__path__ = []
        module.__spec__ = ModuleSpec(name, None, is_package=True)
        sys.modules[name] = module
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, module)
    sys.modules["torchvision"].__version__ = VERSION  # type: ignore[attr-defined]
