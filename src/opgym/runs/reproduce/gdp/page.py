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
from .plan import GENERALIZATION, TABLES, Settings
from .reproduction import Measured, known
from .tables import UNSCREENED, tables
from .texts import CLAIMED, ROWS, Shown, texts

_DEVIATIONS = "deviations"
#: Of what is shown beside a table, whose runs it is made of.
_TABLE_OF = {UNSCREENED: GENERALIZATION}
#: Where no rows of earlier runs are: the page is of those that come with the package.
_NOWHERE = Path("no", "such", "folder")


def with_gdp_results(page: str, package: Path | None = None, *, partly: bool = False) -> str:
    """A page with its results made anew.

    A table is shown when all of its runs are there: means over some of the rows would be compared with means over all.

    Args:
        page: Text with ``<!-- results: NAME -->`` and ``<!-- end of results -->`` around what ``texts.texts`` calls so,
            and around ``deviations``, what is not as in the paper.
        package: Where the rows are, if elsewhere.
        partly: Whether tables are shown of which runs are missing.
    """

    @cache
    def measured(table: str) -> Measured:
        return known(Settings(tables=(table,)), _NOWHERE, package)

    @cache
    def shown() -> Shown:
        return texts(
            [
                each
                for table in TABLES
                if partly or not measured(table).missing
                for each in tables(measured(table))
            ]
        )

    def made(match: re.Match[str]) -> str:
        name = match["name"]
        if name == _DEVIATIONS:
            return match[1] + "".join(f"- {deviation}\n" for deviation in DEVIATIONS) + match[3]
        if not shown().get(name):
            text = _missing(measured(_TABLE_OF.get(name, name.removesuffix(ROWS))))
        elif name == CLAIMED:
            [(_, headings, rows)] = shown()[name]
            text = markdown(headings, rows)
        else:
            found = [f"**{title}**\n\n{markdown(headings, rows)}" for title, headings, rows in shown()[name]]
            text = "\n" + "\n".join(found) + "\n"
        return match[1] + text + match[3]

    return BLOCK.sub(made, page)


def _missing(measured: Measured) -> str:
    """What stands in the place of a table."""
    runs, missing = len(measured.runnable), len(measured.missing)
    if missing == runs:
        return "Not measured yet.\n"
    return f"Not measured yet: {runs - missing:,} of {runs:,} runs are.\n"
