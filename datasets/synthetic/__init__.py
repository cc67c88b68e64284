"""Random graphs by id: ``synthetic/<family>?n=100&seed=3``.

An id names the same graph, byte for byte, on every machine and with every version of numpy. The graph's name
is its canonical id: every parameter, and the version of the generators.
"""

from .augmentation import AUGMENTATION_VERSION, augment, augment_imported
from .generator import FAMILIES, GENERATOR_VERSION, PREFIX, ids, load, parameters_of, read
from .splits import SEEDS, split_of

__all__ = [
    "AUGMENTATION_VERSION",
    "FAMILIES",
    "GENERATOR_VERSION",
    "PREFIX",
    "SEEDS",
    "augment",
    "augment_imported",
    "ids",
    "load",
    "parameters_of",
    "read",
    "split_of",
]
