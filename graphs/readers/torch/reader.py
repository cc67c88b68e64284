"""The front door of the torch reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from torch import Tensor, nn

from ....errors import ImportFailedError, unknown_id
from ..report import Imported, ImportReport
from .emit import Emitted, emit
from .optimizers import UPDATE_RULES
from .program import Program, program_of
from .step import Loss, Step, StepOptions, run_step

Optimizer = Literal["sgd", "adam"]
Example = Tensor | Sequence[Any] | Mapping[str, Any]

#: How many names a note lists.
_NAMES = 8


def from_torch(
    module: nn.Module,
    example_inputs: Example,
    *,
    train: bool = True,
    optimizer: Optimizer | None = "sgd",
    loss: Loss | None = None,
    name: str = "",
    batch: int | None = None,
) -> Imported:
    """Records the graph of one step of a torch module, op by op, on fake tensors.

    Nothing is computed and no weights are needed: the module may live on the ``meta`` device, and so may the
    inputs. Every ATen operator that does work is an op, in the order of execution; views are other names of
    their storage; an in-place operator writes a new tensor. In a training graph each parameter is the output of
    a ``variable`` op, with the optimizer's moments beside it, and colocated with its update, whose output is
    the same storage; so are buffers that the step changes. Layers are module paths, and an op of the backward
    pass has the layer of the forward op whose gradient it computes.

    Args:
        module: Any module; it is left as it was.
        example_inputs: A tensor, a tuple of the arguments of ``forward``, or a dict of named ones; nested
            tuples, lists and dicts may hold tensors. Only shapes and types count.
        train: Forward, backward and update in training mode (level ``aten-train``), or inference alone (level
            ``aten-infer``).
        optimizer: ``"sgd"`` (one op per parameter) or ``"adam"`` (seven, and two moments); ``None`` leaves the
            gradients as outputs. Without meaning for inference.
        loss: Makes one real number of what the module returns. By default the mean of each real output, summed;
            so a module that returns its loss needs none.
        name: Of the graph; the class of the module where absent.
        batch: Size of the first dimension of every input that has the same one as the first input, in place of
            the size it has.

    Raises:
        ImportFailedError: The module looks at values, uses what fake tensors cannot do, fails, or has no loss.
        UnknownIdError: An unknown optimizer.
    """
    label, step, emitted = _record(module, example_inputs, StepOptions(train, optimizer, loss, batch), name)
    return Imported(emitted.graph, _report(label, step, emitted))


def executable(
    module: nn.Module,
    example_inputs: Example,
    *,
    train: bool = True,
    optimizer: Optimizer | None = "sgd",
    loss: Loss | None = None,
    name: str = "",
    batch: int | None = None,
) -> Program:
    """The same graph as :func:`from_torch` gives, with the call behind each op, to run it for real.

    Args:
        module: See :func:`from_torch`, as for all arguments.

    Raises:
        ImportFailedError: See :func:`from_torch`.
        UnknownIdError: See :func:`from_torch`.
    """
    options = StepOptions(train, optimizer, loss, batch, keep_calls=True)
    return program_of(_record(module, example_inputs, options, name)[2])


def _record(
    module: nn.Module, example_inputs: Example, options: StepOptions, name: str
) -> tuple[str, Step, Emitted]:
    if not isinstance(module, nn.Module):
        raise ImportFailedError(
            f"from_torch got a {type(module).__name__}; expected a torch.nn.Module (wrap a function in one)"
        )
    if options.optimizer is not None and options.optimizer not in UPDATE_RULES:
        raise unknown_id("optimizer", str(options.optimizer), list(UPDATE_RULES))
    if options.loss is not None and not options.train:
        raise ImportFailedError("loss= is given and train=False; an inference graph has no loss")
    label = name or type(module).__name__
    step = run_step(module, example_inputs, options, label)
    level = "aten-train" if options.train else "aten-infer"
    try:
        return label, step, emit(step, level, label, train=options.train)
    except ImportFailedError as error:
        raise ImportFailedError(f"{label}: {error}") from error


def _report(label: str, step: Step, emitted: Emitted) -> ImportReport:
    graph = emitted.graph
    notes = list(step.notes)
    if step.unused:
        notes.append(f"{len(step.unused)} parameters get no gradient and no update: {_list(step.unused)}")
    if emitted.unread:
        notes.append(f"{len(emitted.unread)} parameters are not read and left out: {_list(emitted.unread)}")
    if emitted.unused:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(emitted.unused.items()))
        notes.append(f"nobody uses the results of these ops, so they were left out: {kinds}")
    if step.recorder.constants:
        notes.append(
            f"{len(step.recorder.constants)} tensors that are no parameters or buffers are constants"
        )
    return ImportReport(
        source=label,
        format="torch",
        level=graph.level,
        ops=graph.num_ops,
        tensors=graph.num_tensors,
        fingerprint=graph.fingerprint,
        folded=dict(sorted((step.recorder.views + emitted.unused).items())),
        missing_cost=dict(sorted(emitted.missing_cost.items())),
        notes=tuple(notes),
    )


def _list(names: Sequence[str]) -> str:
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")
