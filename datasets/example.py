"""Small built-in graphs: what an environment plays without arguments, and what docs and tests use."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import unknown_id
from ..graphs import VARIABLE, Graph, GraphBuilder

PREFIX = "example/"
_FLOAT_BYTES = 4


def ids() -> list[str]:
    """All ids of this family, e.g. ``example/rnn-train``."""
    return [PREFIX + name for name in _BUILDERS]


def load(name: str) -> Graph:
    """Builds an example graph.

    Args:
        name: One of :func:`ids`, with or without the prefix.

    Raises:
        UnknownIdError: With the nearest ids.
    """
    build = _BUILDERS.get(name.removeprefix(PREFIX))
    if build is None:
        raise unknown_id("example graph", name, ids())
    return build()


def rnn_train(
    *, layers: int = 2, steps: int = 6, batch: int = 64, width: int = 2048, classes: int = 8192
) -> Graph:
    """One training step of an unrolled recurrent network, its updates colocated with their variables.

    A cell is tanh([x, h] W). The loss is taken on the last step. With one layer on each of two devices the
    layers work on different time steps at once, which one device cannot.

    Args:
        layers: Stacked recurrent layers.
        steps: Unrolled time steps.
        batch: Sequences in a batch.
        width: Width of the input and of every hidden state.
        classes: Width of the output.
    """
    return _RecurrentTraining(layers, steps, batch, width, classes).build()


class _RecurrentTraining:
    """Builds the graph of :func:`rnn_train`, phase by phase."""

    def __init__(self, layers: int, steps: int, batch: int, width: int, classes: int) -> None:
        self.layers, self.steps, self.batch, self.width, self.classes = layers, steps, batch, width, classes
        self.builder = GraphBuilder("example", "rnn-train")
        self.state_shape = (batch, width)
        self.cell_flops = 2 * batch * 2 * width * width
        self.output_flops = 2 * batch * width * classes
        # h[layer][step]: hidden states; the state before step 0 is a constant
        self.h: list[list[int]] = []
        self.weight: list[int] = []
        self.home: list[int] = []

    def build(self) -> Graph:
        self._declare()
        logits = self._run_forward()
        self._run_backward(logits)
        return self.builder.build()

    def _layer(self, layer: int) -> str:
        return f"rnn/layer{layer}" if layer < self.layers else "output"

    def _declare(self) -> None:
        for layer in range(self.layers + 1):
            rows, columns = (
                (2 * self.width, self.width) if layer < self.layers else (self.width, self.classes)
            )
            name = f"{self._layer(layer)}/weight"
            tensor = self.builder.tensor(shape=(rows, columns), role="parameter", name=name)
            self.weight.append(tensor)
            self.home.append(
                self.builder.op(VARIABLE, outputs=[tensor], group=name, layer=self._layer(layer), name=name)
            )

    def _run_forward(self) -> int:
        b = self.builder
        below = [b.tensor(shape=self.state_shape, role="input", name=f"x{t}") for t in range(self.steps)]
        self.inputs = [below]
        for layer in range(self.layers):
            state = b.tensor(shape=self.state_shape, role="constant", name=f"{self._layer(layer)}/h-init")
            self.h.append([state])
            for t in range(self.steps):
                name = f"{self._layer(layer)}/step{t}"
                z = b.tensor(shape=self.state_shape)
                reads = [below[t], state, self.weight[layer]]
                b.op("MatMul", inputs=reads, outputs=[z], flops=self.cell_flops, layer=self._layer(layer),
                     name=f"{name}/matmul")  # fmt: skip
                state = b.tensor(shape=self.state_shape)
                b.op("Tanh", inputs=[z], outputs=[state], flops=self.batch * self.width, elementwise=True,
                     layer=self._layer(layer), name=f"{name}/tanh")  # fmt: skip
                self.h[layer].append(state)
            below = self.h[layer][1:]
            self.inputs.append(below)
        logits = b.tensor(shape=(self.batch, self.classes))
        b.op("MatMul", inputs=[below[-1], self.weight[-1]], outputs=[logits], flops=self.output_flops,
             layer="output", name="output/matmul")  # fmt: skip
        return logits

    def _run_backward(self, logits: int) -> None:
        b, top = self.builder, self.layers
        labels = b.tensor(shape=(self.batch,), dtype="int64", role="input", name="labels")
        loss = b.tensor(shape=(), is_output=True, name="loss")
        grad_logits = b.tensor(shape=(self.batch, self.classes))
        b.op("SoftmaxCrossEntropy", inputs=[logits, labels], outputs=[loss, grad_logits],
             flops=8 * self.batch * self.classes, layer="output", name="output/loss")  # fmt: skip
        grad = self._gradient("output/grad-input", "MatMulGrad", [grad_logits, self.weight[top]],
                              self.state_shape, self.output_flops, "output")  # fmt: skip
        grad_weight = self._gradient("output/grad-weight", "MatMulGradWeight", [self.h[-1][-1], grad_logits],
                                     (self.width, self.classes), self.output_flops, "output")  # fmt: skip
        self._update(top, grad_weight, self.width * self.classes)
        from_above: list[int | None] = [None] * (self.steps - 1) + [grad]
        for layer in reversed(range(self.layers)):
            from_above = self._run_layer_backward(layer, from_above)

    def _run_layer_backward(self, layer: int, from_above: list[int | None]) -> list[int | None]:
        """Adds the backward cells of a layer; returns the gradients that it hands to the layer below."""
        name, elements = self._layer(layer), self.batch * self.width
        from_later: int | None = None
        to_below: list[int | None] = [None] * self.steps
        weight_grads = []
        for t in reversed(range(self.steps)):
            arriving = [g for g in (from_above[t], from_later) if g is not None]
            if len(arriving) == 2:
                arriving = [
                    self._gradient(
                        f"{name}/step{t}/grad-sum", "Add", arriving, self.state_shape, elements, name
                    )
                ]
            grad_z = self._gradient(f"{name}/step{t}/tanh-grad", "TanhGrad",
                                    [*arriving, self.h[layer][t + 1]],
                                    self.state_shape, 3 * elements, name)  # fmt: skip
            weight_grads.append(
                self._gradient(f"{name}/step{t}/grad-weight", "MatMulGradWeight",
                               [self.inputs[layer][t], self.h[layer][t], grad_z],
                               (2 * self.width, self.width), self.cell_flops, name)
            )  # fmt: skip
            # Nothing needs the gradient of the inputs of layer 0, nor that of the state before step 0.
            outputs: list[int] = []
            if layer > 0:
                outputs.append(self.builder.tensor(shape=self.state_shape))
                to_below[t] = outputs[-1]
            from_later = None
            if t > 0:
                outputs.append(self.builder.tensor(shape=self.state_shape))
                from_later = outputs[-1]
            if outputs:
                self.builder.op("MatMulGrad", inputs=[grad_z, self.weight[layer]], outputs=outputs,
                                flops=self.cell_flops * len(outputs) // 2, layer=name, direction="backward",
                                name=f"{name}/step{t}/grad-input")  # fmt: skip
        size = 2 * self.width * self.width
        total = self._gradient(f"{name}/grad-weight-sum", "AddN", weight_grads, (2 * self.width, self.width),
                               (self.steps - 1) * size, name)  # fmt: skip
        self._update(layer, total, size)
        return to_below

    def _gradient(
        self, name: str, kind: str, inputs: list[int], shape: tuple[int, ...], flops: int, layer: str
    ) -> int:
        output = self.builder.tensor(shape=shape)
        self.builder.op(kind, inputs=inputs, outputs=[output], flops=flops, layer=layer,
                        direction="backward",
                        elementwise=kind in ("Add", "TanhGrad"), name=name)  # fmt: skip
        return output

    def _update(self, layer: int, gradient: int, elements: int) -> None:
        """Adds the optimizer's step, which writes into the variable and lives where it lives."""
        name = f"{self._layer(layer)}/weight"
        self.builder.op("SGD", inputs=[self.weight[layer], gradient], flops=2 * elements,
                        accessed_bytes=3 * elements * _FLOAT_BYTES, group=name, layer=self._layer(layer),
                        direction="update", update_of=self.home[layer], name=f"{name}/update")  # fmt: skip


def two_branch(*, depth: int = 3, batch: int = 256, width: int = 2048) -> Graph:
    """Inference of a network with two independent branches between a stem and a head.

    Args:
        depth: Layers of a branch.
        batch: Rows of the input.
        width: Width of every layer.
    """
    b = GraphBuilder("example", "two-branch")

    def dense(x: list[int], layer: str, *, is_output: bool = False) -> int:
        rows = width * len(x)
        weight = b.tensor(shape=(rows, width), role="parameter", name=f"{layer}/weight")
        z = b.tensor(shape=(batch, width))
        b.op("MatMul", inputs=[*x, weight], outputs=[z], flops=2 * batch * rows * width, layer=layer,
             name=f"{layer}/matmul")  # fmt: skip
        y = b.tensor(shape=(batch, width), is_output=is_output)
        b.op("Relu", inputs=[z], outputs=[y], flops=batch * width, elementwise=True, layer=layer,
             name=f"{layer}/relu")  # fmt: skip
        return y

    stem = dense([b.tensor(shape=(batch, width), role="input", name="x")], "stem")
    ends = []
    for branch in ("left", "right"):
        y = stem
        for i in range(depth):
            y = dense([y], f"{branch}/layer{i}")
        ends.append(y)
    dense(ends, "head", is_output=True)
    return b.build()


_BUILDERS: dict[str, Callable[[], Graph]] = {"rnn-train": rnn_train, "two-branch": two_branch}
