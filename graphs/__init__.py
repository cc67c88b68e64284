"""Computation graphs, clusters, cost models, readers and writers, and the simulator's front door."""

from .builder import GraphBuilder
from .cluster import CHANNELS, Cluster
from .costs import CostModel, RooflineCost, TableCost
from .graph import DIRECTIONS, ROLES, VARIABLE, Graph
from .order_peak import peak_of_order, peak_of_orders
from .profiles import LINKS, PROFILES, DeviceProfile, Link
from .readers import from_torch
from .simulate import BatchSimulation, Simulation, Simulator, Timeline
from .storage import load, save

__all__ = [
    "CHANNELS",
    "DIRECTIONS",
    "LINKS",
    "PROFILES",
    "ROLES",
    "VARIABLE",
    "BatchSimulation",
    "Cluster",
    "CostModel",
    "DeviceProfile",
    "Graph",
    "GraphBuilder",
    "Link",
    "RooflineCost",
    "Simulation",
    "Simulator",
    "TableCost",
    "Timeline",
    "from_torch",
    "load",
    "peak_of_order",
    "peak_of_orders",
    "save",
]
