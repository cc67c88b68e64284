"""Searches over orders that go on until the budget is spent; their loops run in the core."""

# isort: skip_file
# Importing registers, and the order of registration is the order of tables: cheap ones first.
from .random_order import RandomOrder
from .beam import Beam
from .key_search import KeySearch
from .order_search import OrderSearch
from .order_annealing import OrderAnnealing

__all__ = ["Beam", "KeySearch", "OrderAnnealing", "OrderSearch", "RandomOrder"]
