"""``opgym datasets build``: the zoo from its definitions, or another one from a file's."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import UNSOUND, new_table, note, print_json, show
from .problem import JsonOption
from .progress import progress_bar
from .workers import cores

if TYPE_CHECKING:
    from ..datasets.zoo.build import Result
    from ..datasets.zoo.registry import Variant


def build(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAMES]...", help="Graphs to build. Default: all.")
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder; a build goes on with what is there.")
    ] = Path("zoo-build"),
    check: Annotated[
        bool, typer.Option("--check", help="Compare with what comes with opgym, byte for byte.")
    ] = False,
    definitions: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A Python file with definitions of your own, or a package's name."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes. Default: one per core.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, metavar="S", help="Most seconds for one graph.")] = 900.0,
    dataset_version: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Of the manifest; 1 starts over, with splits made anew. Default: one more if a shipped graph changes "
            "or goes.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Build the zoo from its definitions (extra `zoo`).

    Example:

    ```sh
    opgym datasets build rnnlm-2l-train --check
    ```

    Every graph is built in a process of its own; one that fails is listed and stops nothing, and is tried again by
    the next build. DIR/candidates gets the graphs, DIR/zoo those that the rules let in (100 to 100,000 ops, no near
    copies, at most 8 of a family), with their manifest.

    --json prints {results, zoo, dropped}, results a list of {name, status, seconds, sha256, error}; with --check
    {results, compared}, compared telling by name whether a graph has the same bytes as the shipped one.
    """
    from ..datasets import zoo
    from ..datasets.zoo.assembly import assemble
    from ..datasets.zoo.build import build as build_graphs
    from ..datasets.zoo.build import choose, offered
    from ..datasets.zoo.comparison import Sameness, compare
    from ..datasets.zoo.registry import MODELS
    from .targets import require_folder

    origin = MODELS if definitions is None else definitions
    known = offered(origin)
    if not known:
        raise typer.BadParameter(f"{origin} has no function with @definition", param_hint="--definitions")
    shipped = zoo.manifest()
    chosen = choose(names or [], known)
    if check and not names:
        chosen = [known[name] for name in shipped.entries if name in known]
    if not chosen:
        raise typer.BadParameter("there is nothing to build", param_hint="NAMES")
    require_folder(out, "--out")
    with progress_bar("graphs") as progress:
        results = build_graphs(
            chosen, out, origin=origin, workers=workers or cores(), seconds=seconds, progress=progress
        )
    document: dict[str, Any] = {"results": [asdict(result) for result in results]}
    if check:
        document["compared"] = {
            row.name: compare(out / "candidates" / f"{row.name}.npz", zoo.FOLDER / f"{row.name}.npz").value
            for row in results
        }
    elif any(result.sha256 for result in results):
        with progress_bar("rules") as progress:
            manifest = assemble(
                out,
                known,
                dataset_version=dataset_version,
                shipped=_same_zoo(origin, known),
                progress=progress,
            )
        document |= {"zoo": sorted(manifest.entries), "dropped": [asdict(row) for row in manifest.dropped]}
    if as_json:
        print_json(document)
    else:
        _show_build(results, document, out)
    unsound = {Sameness.NONE, Sameness.ABSENT} & set(document.get("compared", {}).values())
    if unsound or not any(result.sha256 for result in results):
        raise typer.Exit(UNSOUND)


def _same_zoo(origin: str, known: dict[str, Variant]) -> Any:
    """The shipped manifest, where it is the shipped zoo that is built."""
    from ..datasets import zoo
    from ..datasets.zoo.registry import MODELS

    return zoo.manifest() if origin == MODELS and known else None


def _show_build(results: list[Result], document: dict[str, Any], out: Path) -> None:
    failed = [result for result in results if result.status == "failed"]
    if failed:
        grid = new_table({"failed": "left", "seconds": "right", "why": "wrap"})
        for result in failed:
            grid.add_row(result.name, f"{result.seconds:.0f}", result.error)
        show(grid)
    counts = {status: sum(r.status == status for r in results) for status in ("built", "kept", "failed")}
    print(", ".join(f"{count} {status}" for status, count in counts.items() if count))
    if "compared" in document:
        by_sameness: dict[str, list[str]] = {}
        for name, sameness in document["compared"].items():
            by_sameness.setdefault(sameness, []).append(name)
        for sameness, names in by_sameness.items():
            print(f"{sameness}: {', '.join(names)}")
        return
    if "zoo" in document:
        for row in document["dropped"]:
            note(f"kept out: {row['name']} ({row['ops']:,} ops): {row['why']}")
        print(f"{len(document['zoo'])} graphs in {out / 'zoo'}")
