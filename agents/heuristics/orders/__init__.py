"""Rules that order the ops of one device in one pass."""

# isort: skip_file
# Importing registers, and the order of registration is the order of tables: cheap ones first.
from .traversals import BreadthFirst, DepthFirst, PostOrder, ProgramOrder
from .sethi_ullman import SethiUllman
from .freed_bytes import GreedyFreedBytes
from .best_of_three import BestOfThree

__all__ = [
    "BestOfThree",
    "BreadthFirst",
    "DepthFirst",
    "GreedyFreedBytes",
    "PostOrder",
    "ProgramOrder",
    "SethiUllman",
]
