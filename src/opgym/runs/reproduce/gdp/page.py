"""The page of ``opgym reproduce gdp``, docs/gdp_results.md, from the rows that come with the package.

``python docs/generate.py`` makes its tables anew, and a test holds them against these rows. ``opgym reproduce gdp --out
DIR`` leaves rows in DIR/rows.jsonl; copying them to ``stored/`` publishes them.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from ..result_page import BLOCK, markdown
from .claims import DEVIATIONS
from .plan import Settings
from .reproduction import known
from .tables import tables
from .texts import CLAIMED, Shown, texts

_DEVIATIONS = "deviations"
#: Where no rows of earlier runs are: the page is of those that come with the package.
_NOWHERE = Path("no", "such", "folder")


def with_gdp_results(page: str, package: Path | None = None) -> str:
    """A page with its results made anew.

    Args:
        page: Text with ``<!-- results: NAME -->`` and ``<!-- end of results -->`` around what ``texts.texts`` calls so,
            and around ``deviations``, what is not as in the paper.
        package: Where the rows are, if elsewhere.
    """

    @cache
    def shown() -> Shown:
        return texts(tables(known(Settings(), _NOWHERE, package)))

    def made(match: re.Match[str]) -> str:
        name = match["name"]
        if name == _DEVIATIONS:
            return match[1] + "".join(f"- {deviation}\n" for deviation in DEVIATIONS) + match[3]
        if not shown().get(name):
            text = "Not measured yet.\n"
        elif name == CLAIMED:
            [(_, headings, rows)] = shown()[name]
            text = markdown(headings, rows)
        else:
            found = [f"**{title}**\n\n{markdown(headings, rows)}" for title, headings, rows in shown()[name]]
            text = "\n" + "\n".join(found) + "\n"
        return match[1] + text + match[3]

    return BLOCK.sub(made, page)
