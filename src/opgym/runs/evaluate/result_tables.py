"""The two tables of an evaluation, as parquet files: ``results.parquet`` and ``curves.parquet``.

Tables come from anywhere: what is read is held against the columns below before anybody uses it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InvalidDatasetError, MissingExtraError
from ...graphs.atomic import atomic_write
from ...outcome import Verdict

if TYPE_CHECKING:
    import pyarrow as pa

RESULTS, CURVES = "results.parquet", "curves.parquet"
#: Raised when a column changes its meaning, comes or goes.
VERSION = 2
#: Verdicts of the table beside those of outcomes.
NOT_APPLICABLE, FAILED = "not_applicable", "failed"
VERDICTS = (*(verdict.value for verdict in Verdict), NOT_APPLICABLE, FAILED)
#: What an agent had learned from before it ran.
NOTHING, OTHER_GRAPHS, THIS_GRAPH, UNKNOWN_GRAPHS = "nothing", "other_graphs", "this_graph", "unknown_graphs"
TRAINED_ON = (NOTHING, OTHER_GRAPHS, THIS_GRAPH, UNKNOWN_GRAPHS)
#: Numbers of every unit are 0 or in between: ratios of these, and pictures of the ratios, do not overflow.
LEAST_NUMBER, MOST_NUMBER = 1e-30, 1e30
#: What one comparison has at most: a report of more would be read by nobody, and take as many bootstraps as it has
#: pairs of agents.
MOST_AGENTS, MOST_PROBLEMS, MOST_SEEDS = 40, 10_000, 100
#: Largest number that a column of whole numbers holds.
MOST_WHOLE = 2**63 - 1
#: What is read at most: a file beyond these was made to do harm, or should be several.
MOST_FILE_BYTES, MOST_ROWS, MOST_POINTS, MOST_CHARACTERS = 2**28, 1_000_000, 10_000_000, 1_000
_BATCH = 65_536


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: Name.
        kind: ``"text"``, ``"whole"``, ``"number"`` or ``"flag"``.
        meaning: What it holds, with its unit.
        optional: Whether it may be null.
    """

    name: str
    kind: str
    meaning: str
    optional: bool = False


#: What identifies a run within a table, in both of them.
KEY = (
    Column("suite", "text", "name of the suite; empty for a problem of one's own"),
    Column("row", "text", "name of the problem, unique within its suite"),
    Column("agent", "text", "the agent, as it was asked for"),
    Column("options", "text", "digest of the agent's solver, of all its options and of what it has learned"),
    Column("seed", "whole", "seed of the agent's generator"),
    Column("budget", "whole", "most evaluations that the agent was given"),
    Column(
        "seconds_limit",
        "number",
        "most seconds that the agent was given; null where there was no limit",
        True,
    ),
)
RESULT_COLUMNS = (
    *KEY[:2],
    Column("graph", "text", "id of the graph"),
    Column("family", "text", "architecture of the graph, or family of generators of a random one"),
    Column("twins", "text", "group of twins: rows of one group are not independent of each other"),
    Column("cluster", "text", "spec of the cluster; empty for the order of one device"),
    Column("objective", "text", "`step_time`, `peak_memory`, `max_load` or `latency`"),
    *KEY[2:],
    Column("value", "number", "the objective of the solution, in `unit`, lower is better; null without one", True),
    Column("unit", "text", "unit of value, bound, best_known and reference: `ns`, `bytes` or `ms`"),
    Column("verdict", "text", "`ok`, why the solution does not count, `not_applicable` or `failed`"),
    Column("bound", "number", "a value that no solution beats, in `unit`", True),
    Column("best_known", "number", "best value of the reference lines of the suite, in `unit`", True),
    Column("reference", "number", "what rewards are relative to, in `unit`: all work on the fastest single device "
           "whatever its memory, or the program order", True),
    Column("ratio_to_bound", "number", "value / bound where the verdict is `ok`, without unit", True),
    Column("ratio_to_best_known", "number", "value / best_known where the verdict is `ok`, without unit", True),
    Column("ratio_to_reference", "number", "value / reference where the verdict is `ok`, without unit", True),
    Column("evaluations", "whole", "evaluations that the agent spent", True),
    Column("seconds", "number", "wall time of the agent, in seconds; the judging of its solution is not in it", True),
    Column("peak_bytes", "whole", "most memory on any device, resident bytes included, in bytes", True),
    Column("step_time_ns", "whole", "time of the step, in nanoseconds; null where no step is simulated", True),
    Column("trained_on", "text", "what the agent had learned from before it ran, which no budget counts: `nothing`, "
           "`other_graphs`, `this_graph` (the very one) or `unknown_graphs` (it was trained, and does not know on "
           "what)"),
    Column("deterministic", "flag", "the agent drew no random number: all seeds would give this row, one was run"),
    Column("error", "text", "why there is no value: empty, a reason, or the error of the agent"),
)  # fmt: skip
CURVE_COLUMNS = (
    *KEY,
    Column("evaluations", "whole", "evaluations spent when a new best feasible value was found"),
    Column("seconds", "number", "wall time until then, in seconds"),
    Column("value", "number", "that value, in the unit of the row's results"),
)
_COLUMNS = {RESULTS: RESULT_COLUMNS, CURVES: CURVE_COLUMNS}
_MOST = {RESULTS: MOST_ROWS, CURVES: MOST_POINTS}


def write_table(folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes a table atomically.

    Args:
        folder: Where it belongs.
        name: ``RESULTS`` or ``CURVES``.
        rows: A mapping from every column to its value each.

    Raises:
        MissingExtraError: pyarrow is not installed.
        OSError: The folder is missing or not writable, or the disk is full.
    """
    pa = require_pyarrow()
    import pyarrow.parquet as pq

    columns = _COLUMNS[name]
    schema = pa.schema(
        [pa.field(column.name, _type(column), column.optional) for column in columns],
        metadata={"opgym.table": name, "opgym.version": str(VERSION)},
    )
    data = [
        pa.array([row[c.name] for row in rows], field.type) for c, field in zip(columns, schema, strict=True)
    ]
    with atomic_write(folder / name) as file:
        pq.write_table(pa.table(data, schema), file, compression="zstd")


def read_table(folder: str | os.PathLike[str], name: str) -> dict[str, list[Any]]:
    """Reads a table that anybody may have written.

    Args:
        folder: The folder of an evaluation.
        name: ``RESULTS`` or ``CURVES``.

    Returns:
        The values of every column.

    Raises:
        InvalidDatasetError: It is missing, no such table, or has values that no evaluation writes.
        MissingExtraError: pyarrow is not installed.
    """
    pa = require_pyarrow()
    import pyarrow.parquet as pq

    path = Path(folder) / name
    columns = _COLUMNS[name]
    if not path.is_file():
        raise InvalidDatasetError(
            f"{path}: no such file; expected a folder that `opgym evaluate` has written"
        )
    size = path.stat().st_size
    if size > MOST_FILE_BYTES:
        raise InvalidDatasetError(f"{path}: has {size} bytes; at most {MOST_FILE_BYTES} are read")
    try:
        with pq.ParquetFile(path) as file:
            _require_shape(file, path, name)
        # Texts stay encoded until their lengths are known: a small file may hold very long ones very often.
        texts = [column.name for column in columns if column.kind == "text"]
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            values: dict[str, list[Any]] = {column.name: [] for column in columns}
            for batch in file.iter_batches(_BATCH):
                for column in columns:
                    values[column.name] += _values(batch.column(column.name), column, path)
                if len(values[columns[0].name]) > _MOST[name]:
                    raise InvalidDatasetError(f"{path}: has more rows than it says")
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidDatasetError(f"{path}: cannot be read as parquet ({reason:.200})") from None
    for what, known in (("verdict", VERDICTS), ("trained_on", TRAINED_ON)):
        wrong = sorted(set(values.get(what, ())) - set(known))
        if wrong:
            raise InvalidDatasetError(f"{path}: has {what} = {wrong[0]!r:.60}; expected {', '.join(known)}")
    return values


def _require_shape(file: Any, path: Path, name: str) -> None:
    """Refuses other columns, and more than is read; looks at nothing but the metadata."""
    columns = _COLUMNS[name]
    schema, metadata = file.schema_arrow, file.metadata
    given = {field.name: field for field in schema}
    wanted = {column.name: column for column in columns}
    if len(given) < len(schema) or list(given) != list(wanted):
        missing = [key for key in wanted if key not in given]
        other = [key for key in given if key not in wanted]
        raise InvalidDatasetError(
            f"{path}: has other columns than version {VERSION} of this table; missing: {missing!r:.300}, "
            f"not known: {other!r:.300}; `opgym evaluate` of this version writes it anew"
        )
    for key, column in wanted.items():
        kind = given[key].type
        if hasattr(kind, "value_type"):
            kind = kind.value_type
        if kind != _type(column):
            raise InvalidDatasetError(f"{path}: column {key} is of type {kind}; expected {_type(column)}")
    if metadata.num_rows > _MOST[name]:
        raise InvalidDatasetError(f"{path}: has {metadata.num_rows} rows; at most {_MOST[name]} are read")
    whole = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    if whole > 4 * MOST_FILE_BYTES:
        raise InvalidDatasetError(f"{path}: unpacks to {whole} bytes; at most {4 * MOST_FILE_BYTES} are read")


def _values(array: Any, column: Column, path: Path) -> list[Any]:
    """The values of a column in one batch."""
    if column.kind == "text" and hasattr(array, "dictionary"):
        import pyarrow.compute as pc

        longest = pc.max(pc.utf8_length(array.dictionary)).as_py() or 0
        if longest > MOST_CHARACTERS:
            raise InvalidDatasetError(
                f"{path}: column {column.name} has a text of {longest} characters; at most {MOST_CHARACTERS} are read"
            )
    if array.null_count and not column.optional:
        raise InvalidDatasetError(f"{path}: column {column.name} has nulls; expected a value in every row")
    found: list[Any] = array.to_pylist()
    if column.kind in ("number", "whole"):
        for value in found:
            if value is not None and not (value == 0 or LEAST_NUMBER <= value <= MOST_NUMBER):
                raise InvalidDatasetError(
                    f"{path}: column {column.name} holds {value}; expected 0, or {LEAST_NUMBER} .. {MOST_NUMBER}"
                )
    return found


def _type(column: Column) -> pa.DataType:
    pa = require_pyarrow()
    types = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "flag": pa.bool_()}
    return types[column.kind]


def require_pyarrow() -> Any:
    """The module pyarrow.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError(
            "tables of results need pyarrow, which is not installed; run: pip install 'opgym[evaluate]'"
        ) from error
    return pyarrow
