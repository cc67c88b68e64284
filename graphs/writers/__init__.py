"""Writers: what others read. ``opgym.graphs.save`` writes graphs; :mod:`.onnx` writes models back, annotated
or reordered.
"""

from .chrome_trace import write_chrome_trace
from .device_map import device_map, write_device_map
from .dot import dot_text, write_dot

__all__ = ["device_map", "dot_text", "write_chrome_trace", "write_device_map", "write_dot"]
