"""Readers: a file or an object in, a graph and an import report out."""

from .report import Imported, ImportReport

__all__ = ["ImportReport", "Imported"]
