"""Values that others are measured against, stored with the solutions that reach them."""

from .best_known import PACKAGED, BestKnown, Known, packaged_best_known
from .proven_peaks import PACKAGED_PEAKS, ProvenPeak, load_proven_peaks, save_proven_peaks
from .suite_lines import FOLDER, Best, Line, Lines, lines, load_named, suites_with_lines, versions

__all__ = [
    "FOLDER",
    "PACKAGED",
    "PACKAGED_PEAKS",
    "Best",
    "BestKnown",
    "Known",
    "Line",
    "Lines",
    "ProvenPeak",
    "lines",
    "load_named",
    "load_proven_peaks",
    "packaged_best_known",
    "save_proven_peaks",
    "suites_with_lines",
    "versions",
]
