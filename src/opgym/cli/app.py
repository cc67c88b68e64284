"""Assembles the commands, and turns every error into a message on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..errors import ExecutionFailedError, OpgymError
from . import (
    INTERRUPTED,
    benchmark,
    check,
    datasets,
    evaluate,
    evaluation_report,
    import_model,
    info,
    listings,
    place,
    reproduce,
    schedule,
    train,
)
from .console import complain

#: Exit codes: bad input; output that cannot be written, or what ran and failed; nobody reads the output.
BAD_INPUT, FAILED, BROKEN_PIPE = 2, 1, 141


class Commands(TyperGroup):
    """The root command: no user ever sees a traceback for something that is not a bug."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the chosen command."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except OpgymError as error:
            complain(str(error))
            raise typer.Exit(FAILED if isinstance(error, ExecutionFailedError) else BAD_INPUT) from None
        except typer.BadParameter as error:
            command = error.ctx.command_path if error.ctx is not None else f"opgym {ctx.invoked_subcommand}"
            complain(f"{error.format_message()}\nsee: {command} --help")
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            complain("interrupted; files are either complete or as they were before")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _discard_stdout()
            raise typer.Exit(BROKEN_PIPE) from None
        except OSError as error:
            _discard_stdout()
            where = f"{error.filename}: " if error.filename else ""
            complain(f"{where}{error.strerror or error}")
            raise typer.Exit(FAILED) from None
        except MemoryError:
            complain("out of memory; use a smaller graph or a machine with more memory")
            raise typer.Exit(FAILED) from None
        return result


app = typer.Typer(
    name="opgym",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with `opgym place onnx-light/inception_v2`. "
    "Every command has --help with examples, and --json for programs.",
)


def _print_version(asked: bool) -> None:
    if asked:
        from .. import __version__

        print(f"opgym {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Place computation graphs on devices, order their ops, and see how far every method is from a bound."""


app.command("place")(place.place)
app.command("schedule")(schedule.schedule)
app.command("train", context_settings=train.PASSED_ON)(train.train)
app.command("evaluate", context_settings=train.PASSED_ON)(evaluate.evaluate)
app.command("report")(evaluation_report.report)
app.command("check")(check.check)
app.command("import")(import_model.import_model)
app.command("solvers")(listings.solvers)
app.add_typer(datasets.datasets_app, name="datasets")
app.add_typer(benchmark.benchmark_app, name="benchmark")
app.add_typer(reproduce.reproduce_app, name="reproduce")
app.command("info")(info.info)


def run() -> int:
    """Runs the process's command line and returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a name or a unit that the terminal cannot show
    try:
        app()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    return 0


def _discard_stdout() -> None:
    """Nobody reads stdout any more: keep the interpreter from complaining when it flushes at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # not a real file, as in tests
        return
