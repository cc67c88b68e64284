"""Reads ONNX models. Importing this package imports onnx, so readers load it when a model is read."""

from .options import SUBGRAPH_POLICIES, TRUST
from .reader import read_onnx

__all__ = ["SUBGRAPH_POLICIES", "TRUST", "read_onnx"]
