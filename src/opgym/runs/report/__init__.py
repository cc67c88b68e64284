"""``opgym report``: what the tables of evaluations say, as numbers, Markdown and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...graphs.atomic import write_text
from ...graphs.plot import require_picture_path
from .figures import PANELS, draw_anytime, draw_means, draw_memory, draw_profile
from .markdown import page
from .numbers import document
from .sections import Section, read_sections

#: Name of the page.
PAGE = "report.md"

__all__ = ["PAGE", "report"]


def report(folders: Sequence[Path], out: Path) -> dict[str, Any]:
    """Compares what is in the folders of evaluations.

    Args:
        folders: Folders that ``opgym evaluate`` has written; their results are joined.
        out: Existing folder for ``report.md`` and its pictures. Names in the tables become no names of files.

    Returns:
        ``{sections, files}``: what ``numbers.document`` says of each suite, population, objective, budget and limit of
        time, and the names of the files.

    Raises:
        InvalidDatasetError: A table is damaged, two contradict each other, or nothing can be compared.
        MissingExtraError: matplotlib or pyarrow is not installed.
        OSError: The folder is not writable, or the disk is full.
    """
    require_picture_path(out / "picture.svg")
    sections = read_sections(folders)
    documents = [document(section) for section in sections]
    pictures = [
        _draw(section, numbers, out, str(position))
        for position, (section, numbers) in enumerate(zip(sections, documents, strict=True), 1)
    ]
    write_text(out / PAGE, page(documents, pictures, [folder.name for folder in folders]))
    files = [PAGE, *(file for of_section in pictures for files in of_section.values() for file in files)]
    return {"sections": documents, "files": files}


def _draw(section: Section, numbers: dict[str, Any], out: Path, suffix: str) -> dict[str, list[str]]:
    """The pictures of a section, by what they show."""
    files = {}
    for what, draw in (("means", draw_means), ("profile", draw_profile), ("anytime", draw_anytime)):
        files[what] = [f"{what}-{suffix}.svg"]
        draw(section, numbers, out / files[what][0])
    simulated = [not np.isnan(section.column(a, "step_time_ns")).all() for a in range(len(section.agents))]
    firsts = range(0, len(section.problems), PANELS) if any(simulated) else ()
    files["memory"] = [f"memory-{suffix}-{page}.svg" for page in range(1, len(firsts) + 1)]
    for first, file in zip(firsts, files["memory"], strict=True):
        draw_memory(section, out / file, first)
    return files
