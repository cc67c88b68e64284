"""Solvers that build a placement or an order in one pass; one file per method."""

# isort: skip_file
# Importing registers, and the order of registration is the order of tables: cheap ones first.
from .single_device import SingleDevice
from .best_of_random import BestOfRandom
from .human_expert import HumanExpert
from .metis import Metis
from .m_topo import MTopo
from .critical_path import CriticalPath
from .m_etf import MEtf
from .heft import Heft
from .m_sct import MSct
from . import orders
from .partition_dfs import PartitionDfs

__all__ = [
    "BestOfRandom",
    "CriticalPath",
    "Heft",
    "HumanExpert",
    "MEtf",
    "MSct",
    "MTopo",
    "Metis",
    "PartitionDfs",
    "SingleDevice",
    "orders",
]
