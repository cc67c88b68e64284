"""REGAL: learned proposals for BRKGA; importing needs no torch, training and solving do (extra ``train``)."""

# isort: skip_file
# Importing registers, and the order of registration is the order of tables.
from .regal import Regal, GraphAsSequence
from .regal_plus import RegalPlus

__all__ = ["GraphAsSequence", "Regal", "RegalPlus"]
