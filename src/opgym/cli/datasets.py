"""``opgym datasets``: which graphs have an id, whether they are sound, and how they are made."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import dataset_build, dataset_runs
from .console import UNSOUND, complain, new_table, note, print_json, show
from .problem import JsonOption
from .progress import progress_bar

if TYPE_CHECKING:
    from ..datasets.zoo.verification import Finding

datasets_app = typer.Typer(no_args_is_help=True, help="Graphs that can be named by an id.")
datasets_app.command("reference")(dataset_runs.reference)
datasets_app.command("screen")(dataset_runs.screen)
datasets_app.command("build")(dataset_build.build)


@datasets_app.command("list")
def list_datasets(
    contains: Annotated[str, typer.Argument(metavar="[TEXT]", help="Only ids that contain this.")] = "",
    family: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only graphs of this architecture.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only `train`, `validation` or `test`.")
    ] = None,
    suite: Annotated[
        str | None, typer.Option(metavar="NAME", help="The problems of a suite instead, e.g. `gdp`.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List graphs that have an id, or the problems of a suite.

    Example:

    ```sh
    opgym datasets list zoo/ --split test
    ```

    Of each synthetic family one id is listed; any other parameters may be asked for.

    --json prints a list of {id, ops, tensors, topology, family, level, source, split}; topology is a hash of op
    kinds and edges, sizes ignored, and no split divides a family. With --suite it prints a list of {graph,
    fingerprint, cluster, objective, capacity_bytes, part, role, unsupported, population}; population is "synthetic"
    or "real".
    """
    from .. import datasets
    from ..datasets.catalogue import catalogue
    from ..datasets.zoo.splits import SPLITS
    from ..errors import unknown_id

    if split is not None and split not in SPLITS:
        raise unknown_id("split", split, list(SPLITS))
    if suite is not None:
        if family is not None:
            raise typer.BadParameter("is not told of the rows of a suite", param_hint="--family")
        _list_suite(suite, contains, split, as_json)
        return
    rows = list(catalogue([id for id in datasets.ids() if contains in id]))
    if family is not None and all(family != row.family for row in rows):
        known = {row.family for row in catalogue(datasets.ids())}
        if family not in known:
            raise unknown_id("family", family, sorted(known))
    rows = [row for row in rows if family in (None, row.family) and split in (None, row.split)]
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    grid = new_table(
        {"id": "wrap", "ops": "right", "tensors": "right", "family": "left", "level": "left", "split": "left"}
    )
    for row in rows:
        grid.add_row(row.id, f"{row.ops:,}", f"{row.tensors:,}", row.family, row.level, row.split)
    show(grid)
    note(f"{len(rows)} ids")


def _list_suite(name: str, contains: str, part: str | None, as_json: bool) -> None:
    from .. import datasets

    found = datasets.suite(name)
    rows = [row for row in found.rows if contains in row.graph and part in (None, row.part)]
    if as_json:
        print_json([asdict(row) | {"population": row.population} for row in rows])
        return
    grid = new_table(
        {
            "graph": "wrap",
            "cluster": "left",
            "objective": "left",
            "GB each": "right",
            "part": "left",
            "role": "left",
        }
    )
    for row in rows:
        cap = "" if row.capacity_bytes is None else f"{row.capacity_bytes / 1e9:.2f}"
        grid.add_row(row.graph, row.cluster or "one device", row.objective, cap, row.part, row.role)
    show(grid)
    note(f"{len(rows)} rows; {found.rule}")


@datasets_app.command("suites")
def list_suites(as_json: JsonOption = False) -> None:
    """List suites (named lists of problems) and hold-out protocols (what may be trained on).

    Example:

    ```sh
    opgym datasets suites
    ```

    --json prints {suites, protocols}: lists of {name, version, summary, rule, rows, parts, populations, generated} and
    of {name, version, summary, train, test}; parts has the number of rows of each, populations that of the test's
    synthetic and real rows, generated the rules of graphs for training that are too many to list; train and test are
    lists of ids.
    """
    from .. import datasets
    from ..datasets.suites import POPULATIONS

    suites = [datasets.suite(name) for name in datasets.suite_names()]
    protocols = [datasets.protocol(name) for name in datasets.protocol_names()]
    if as_json:
        print_json(
            {
                "suites": [
                    {
                        "name": suite.name,
                        "version": suite.suite_version,
                        "summary": suite.summary,
                        "rule": suite.rule,
                        "rows": len(suite.rows),
                        "parts": {part: len(suite.part(part)) for part in ("train", "validation", "test")},
                        "populations": {which: len(suite.part("test", which)) for which in POPULATIONS},
                        "generated": [rule.to_json() for rule in suite.generated],
                    }
                    for suite in suites
                ],
                "protocols": [
                    {
                        "name": protocol.name,
                        "version": protocol.protocol_version,
                        "summary": protocol.summary,
                        "train": list(protocol.train),
                        "test": list(protocol.test),
                    }
                    for protocol in protocols
                ],
            }
        )
        return
    grid = new_table(
        {"suite": "left", "train": "right", "validation": "right", "test": "right", "problems": "wrap"}
    )
    for suite in suites:
        parts = (str(len(suite.part(part))) for part in ("train", "validation", "test"))
        grid.add_row(suite.name, *parts, suite.summary)
    show(grid)
    grid = new_table({"protocol": "left", "train": "right", "test": "right", "holds out": "wrap"})
    for protocol in protocols:
        grid.add_row(protocol.name, str(len(protocol.train)), str(len(protocol.test)), protocol.summary)
    show(grid)


@datasets_app.command("show")
def show_dataset(
    id: Annotated[str, typer.Argument(metavar="ID", help="Of a graph, e.g. `zoo/rnnlm-2l-train`.")],
    as_json: JsonOption = False,
) -> None:
    """Print what is known of a graph: where it is from, its configuration, its size.

    Example:

    ```sh
    opgym datasets show onnx-light/densenet121
    ```

    --json prints {id, ops, tensors, topology, family, level, source, split, fingerprint, parameter_bytes,
    flops, kinds, notes} and, for graphs of the zoo, {sha256, licence, reference, batch, configuration}.
    """
    from ..datasets.describe import describe

    document = describe(id)
    if as_json:
        print_json(document)
        return
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for key, value in document.items():
        if key == "kinds":
            value = ", ".join(f"{kind} {count:,}" for kind, count in list(value.items())[:12])
        elif key == "configuration":
            value = ", ".join(f"{name} {what}" for name, what in value.items())
        elif key == "notes":
            value = "\n".join(value)
        grid.add_row(key.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
    show(grid)


@datasets_app.command("stats")
def stats(as_json: JsonOption = False) -> None:
    """Count the zoo: graphs by family, level, source and split, bytes, and what its rules keep out.

    Example:

    ```sh
    opgym datasets stats
    ```

    --json prints {graphs, topologies, families, groups, ops, bytes, dataset_version, built_with, by_family,
    by_level, by_source, by_split, by_mode, dropped}; groups are families with twins counted once, ops is
    {least, median, most, all}.
    """
    from ..datasets import zoo
    from ..datasets.zoo.statistics import statistics

    document = statistics(zoo.manifest(), zoo.FOLDER)
    if as_json:
        print_json(document)
        return
    ops = document["ops"]
    print(
        f"{document['graphs']} graphs of {document['families']} families ({document['groups']} without twins), "
        f"{document['topologies']} topologies, {document['bytes'] / 1e6:.1f} MB, "
        f"dataset version {document['dataset_version']}"
    )
    print(f"ops: {ops['least']:,} to {ops['most']:,}, median {ops['median']:,}, {ops['all']:,} in all\n")
    for title in ("level", "source", "split", "mode"):
        counts = document[f"by_{title}"]
        print(f"{title}: {', '.join(f'{name} {count}' for name, count in counts.items()) or '-'}")
    grid = new_table(
        {"family": "left", "graphs": "right", "ops": "right", "split": "left", "twin of": "left"}
    )
    for family, row in document["by_family"].items():
        span = f"{row['least']:,} - {row['most']:,}"
        twin = row["group"] if row["group"] != family else ""
        grid.add_row(family, str(row["graphs"]), span, row["split"], twin)
    show(grid)
    if document["dropped"]:
        print(f"kept out: {', '.join(f'{why} {count}' for why, count in document['dropped'].items())}")


@datasets_app.command("verify")
def verify(
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="A zoo, e.g. of a build, and nothing else. Default: what comes with opgym."
        ),
    ] = None,
    lines: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Reference lines, e.g. of a run, and nothing else. Default: what comes with opgym.",
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Run all heuristics of all reference lines again, too (minutes).")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Recompute what is said of every graph of the zoo, and of every reference line of the suites.

    Example:

    ```sh
    opgym datasets verify
    ```

    Of graphs: checksums, fingerprints, topologies, counts and splits. Of lines, in the newest version of each suite:
    whether the suite has the row and the graph is the same, what the best known solution is worth, the bound, and
    that nothing is below it.

    Exits with 1 where anything is wrong. --json prints {graphs, bytes, lines, findings}, findings a list of {file,
    problem}.
    """
    from ..datasets import zoo
    from ..datasets.reference import FOLDER
    from ..datasets.zoo.manifest import MANIFEST, Manifest
    from ..datasets.zoo.verification import verify as find

    findings: list[Finding] = []
    files: list[Path] = []
    places = [path for path in (folder, lines) if path is not None] or [zoo.FOLDER, FOLDER]
    if lines is None or folder is not None:
        place = places[0]
        with progress_bar("graphs") as progress:
            findings += find(place, progress)
        files = [place / entry.file for entry in Manifest.load(place / MANIFEST).entries.values()]
    size = sum(file.stat().st_size for file in files if file.exists())
    count = 0
    if folder is None or lines is not None:
        count, wrong = _verify_lines(places[-1], full)
        findings += wrong
    if as_json:
        found = [asdict(finding) for finding in findings]
        print_json({"graphs": len(files), "bytes": size, "lines": count, "findings": found})
    elif findings:
        grid = new_table({"file": "left", "problem": "wrap"})
        for finding in findings:
            grid.add_row(finding.file, finding.problem)
        show(grid)
    else:
        if files:
            print(f"{len(files)} graphs, {size / 1e6:.1f} MB: all as the manifest says")
        if count:
            print(f"{count} reference lines: all hold")
    if findings:
        complain(f"{len(findings)} problems in {', '.join(map(str, places))}")
        raise typer.Exit(UNSOUND)


def _verify_lines(folder: Path, full: bool) -> tuple[int, list[Finding]]:
    """How many reference lines there are, and what is wrong with them."""
    from .. import datasets
    from ..datasets.reference import suites_with_lines
    from ..datasets.reference.verification import verify_lines
    from ..runs.references.reference import published
    from ..runs.references.reference_columns import wrong_heuristics

    count, findings = 0, []
    for name in suites_with_lines(folder):
        found = published(name, folder)
        assert found is not None
        count += len(found)
        with progress_bar(name) as progress:
            findings += verify_lines(
                datasets.suite(name), found, progress, wrong_heuristics if full else None
            )
    if not count:
        raise typer.BadParameter(
            f"there are no reference lines in {folder}; expected files that are named like gdp.v1.json",
            param_hint="--lines",
        )
    return count, findings
