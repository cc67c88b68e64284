"""Pictures of timelines, of placements, and of the memory of orders.

They need matplotlib (``pip install 'opgym[plot]'``), which is imported when a picture is drawn, not before.
"""

from .files import FORMATS, require_picture_path
from .orders import OrderCurve, plot_orders
from .placements import PlacementMap, plot_placements
from .timeline import plot_timeline

__all__ = [
    "FORMATS",
    "OrderCurve",
    "PlacementMap",
    "plot_orders",
    "plot_placements",
    "plot_timeline",
    "require_picture_path",
]
