"""A network with what it is fed: what a definition yields and what XLA compiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from .....graphs.readers import Imported
from .late import jax, jnp
from .net import Net

if TYPE_CHECKING:
    from jax import Array
    from jax.stages import Lowered

    Tree = dict[str, Array]

Optimizer = Literal["sgd", "momentum", "adam"]
Mode = Literal["train", "infer"]
Network = Callable[..., Any]

#: What the text of a program would else depend on the machine by, and what only its machine code depends on.
COMPILER_OPTIONS: Mapping[str, str | bool] = {
    # XLA's own scheduler for little memory, the best of its three lists; the default on a CPU is for concurrency.
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
    "xla_cpu_max_isa": "AVX2",
    # Of machine code, which nobody runs.
    "xla_backend_optimization_level": "0",
    "xla_llvm_disable_expensive_passes": True,
}


@dataclass(frozen=True)
class Input:
    """One argument of a network.

    Attributes:
        shape: Its shape.
        dtype: Its numbers, e.g. ``"float32"``.
    """

    shape: tuple[int, ...]
    dtype: str


def reals(*shape: int) -> Input:
    """An argument of float32 numbers."""
    return Input(shape, "float32")


def ids(*shape: int) -> Input:
    """An argument of whole numbers."""
    return Input(shape, "int32")


@dataclass(frozen=True)
class Program:
    """One graph to be: calling it compiles the network.

    Attributes:
        name: Name in the zoo.
        network: A function of a :class:`.net.Net` and the inputs, which returns arrays; given the targets too,
            its loss.
        inputs: Arguments at inference.
        targets: Arguments that training has besides.
        optimizer: What updates the weights; ``None`` compiles inference.
    """

    name: str
    network: Network
    inputs: tuple[Input, ...]
    targets: tuple[Input, ...]
    optimizer: Optimizer | None

    def arguments(self) -> tuple[Any, ...]:
        """Abstract arguments of :meth:`step`: weights, running statistics, the optimizer's state, data."""
        given = self.inputs if self.optimizer is None else self.inputs + self.targets
        data = [_abstract(argument.shape, argument.dtype) for argument in given]
        asked = Net(None, {}, train=self.optimizer is not None)
        jax.eval_shape(lambda *arrays: self.network(asked, *arrays), *data)
        weights, statistics = (
            {path: _abstract(shape) for path, shape in shapes.items()}
            for shapes in (asked.shapes, asked.statistic_shapes)
        )
        state: dict[str, Any] = {}
        if self.optimizer == "adam":
            state = {"count": _abstract((), "int32"), "mu": weights, "nu": weights}
        elif self.optimizer == "momentum":
            state = {"momentum": weights}
        return weights, statistics, state, data

    def step(self, params: Tree, batch_stats: Tree, opt_state: dict[str, Any], data: list[Array]) -> Any:
        """What is compiled: outputs, or the loss and new weights, statistics and state."""
        if self.optimizer is None:
            return self.network(Net(params, batch_stats, train=False), *data)

        def loss(weights: Tree) -> tuple[Array, Tree]:
            net = Net(weights, batch_stats, train=True)
            return self.network(net, *data), net.updated

        (value, statistics), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        with jax.named_scope("optimizer"):
            weights, state = _updated(self.optimizer, params, gradients, opt_state)
        return value, weights, statistics, state

    def lowered(self) -> Lowered:
        """The program before XLA."""
        with jax.default_device(jax.devices("cpu")[0]), jax.enable_x64(False):
            # What the step does not read stays an argument: parameters are those that there are.
            return jax.jit(self.step, keep_unused=True).lower(*self.arguments())

    def text(self) -> str:
        """The text of the compiled program."""
        return str(self.lowered().compile(dict(COMPILER_OPTIONS)).as_text())

    def __call__(self) -> Imported:
        """The graph."""
        from .....graphs.readers.hlo import read_hlo_text

        return read_hlo_text(self.text(), name=self.name, source=self.name, strict=True)


def _abstract(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    made: Any = jax.ShapeDtypeStruct  # untyped
    return made(shape, dtype)


def _updated(
    optimizer: Optimizer, weights: Tree, gradients: Tree, state: dict[str, Any]
) -> tuple[Tree, dict[str, Any]]:
    """New weights and state of a step of stochastic gradient descent, plain or with momentum, or of Adam."""
    if optimizer == "sgd":
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), {}
    if optimizer == "momentum":
        velocity = jax.tree.map(lambda m, g: 0.9 * m + g, state["momentum"], gradients)
        return jax.tree.map(lambda w, m: w - 0.1 * m, weights, velocity), {"momentum": velocity}
    count = state["count"] + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mu"], gradients)
    square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["nu"], gradients)
    rate, norm = 1e-3 / (1 - 0.9**count), 1 / (1 - 0.999**count)
    moved = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v * norm) + 1e-8), weights, mean, square)
    return moved, {"count": count, "mu": mean, "nu": square}


Entry = tuple[str, Program, Mapping[str, Any]]


def programs(
    name: str,
    network: Network,
    *,
    inputs: tuple[Input, ...],
    targets: tuple[Input, ...] = (),
    batch: int,
    optimizer: Optimizer = "sgd",
    modes: tuple[Mode, ...] = ("train", "infer"),
    **configuration: Any,
) -> Iterator[Entry]:
    """The training graph and the inference graph of one network.

    Args:
        name: Name without the mode.
        network: See :class:`Program`.
        inputs: See :class:`Program`.
        targets: See :class:`Program`.
        batch: Samples per step.
        optimizer: Of the training graph.
        modes: Which of the two graphs to offer.
        configuration: What distinguishes the network, for people.
    """
    for mode in modes:
        updates = optimizer if mode == "train" else None
        full = f"xla-{name}-{mode}"
        described = {"batch": batch, **configuration, **({"optimizer": updates} if updates else {})}
        yield full, Program(full, network, inputs, targets, updates), described


def image_programs(
    name: str,
    network: Network,
    *,
    batch: int = 32,
    size: int = 224,
    classes: int = 1000,
    optimizer: Optimizer = "momentum",
    modes: tuple[Mode, ...] = ("train", "infer"),
    **configuration: Any,
) -> Iterator[Entry]:
    """Graphs of an image classifier; ``classes`` is passed on to its network."""
    return programs(
        name,
        partial(network, classes=classes),
        inputs=(reals(batch, size, size, 3),),
        targets=(ids(batch),),
        batch=batch,
        optimizer=optimizer,
        modes=modes,
        image=size,
        classes=classes,
        **configuration,
    )


def token_programs(
    name: str,
    network: Network,
    *,
    batch: int,
    length: int,
    vocabulary: int,
    optimizer: Optimizer = "adam",
    modes: tuple[Mode, ...] = ("train", "infer"),
    **configuration: Any,
) -> Iterator[Entry]:
    """Graphs of a model of token sequences; ``vocabulary`` is passed on to its network."""
    return programs(
        name,
        partial(network, vocabulary=vocabulary),
        inputs=(ids(batch, length),),
        targets=(ids(batch, length),),
        batch=batch,
        optimizer=optimizer,
        modes=modes,
        length=length,
        vocabulary=vocabulary,
        **configuration,
    )
