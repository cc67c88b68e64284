"""Pictures of timelines.

They need matplotlib (``pip install 'opgym[plot]'``), which is imported when a picture is drawn, not before.
"""

from .timeline import FORMATS, plot_timeline, require_picture_path

__all__ = ["FORMATS", "plot_timeline", "require_picture_path"]
