"""A training step and the values it starts from; each process makes them anew and gets the same."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ....datasets.zoo.models.workload import Workload
from ....graphs import Graph
from ....graphs.readers.torch import Program, executable


@dataclass(frozen=True)
class Task:
    """The step of a network that is trained, on random numbers.

    Attributes:
        workload: The network, what it is fed, its optimizer.
        seed: Of parameters and inputs.
    """

    workload: Workload
    seed: int = 0

    def __getstate__(self) -> dict[str, object]:  # the recorded step does not pickle
        return {"workload": self.workload, "seed": self.seed}

    @cached_property
    def _module(self) -> torch.nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return self.workload.network()

    @cached_property
    def program(self) -> Program:
        """The recorded step."""
        arguments = tuple(argument.placeholder("cpu") for argument in self.workload.arguments)
        return executable(self._module, arguments, optimizer=self.workload.optimizer, name=self.workload.name)

    @property
    def graph(self) -> Graph:
        """The graph of the step."""
        return self.program.graph

    def given(self) -> dict[int, Tensor]:
        """Fresh contents of :attr:`Program.given`: parameters as the module has them, random inputs, moments of 0."""
        random = torch.Generator().manual_seed(self.seed + 1)
        names = inspect.signature(self._module.forward).parameters
        fed = {}
        for name, argument in zip(names, self.workload.arguments, strict=False):
            if argument.below is None:
                fed[name] = torch.randn(argument.shape, generator=random)
            else:
                fed[name] = torch.randint(argument.below, argument.shape, generator=random)
        state = {**fed, **dict(self._module.named_parameters()), **dict(self._module.named_buffers())}
        found = {}
        for tensor in self.program.given:
            layout = self.program.views[tensor].layout
            found[tensor] = torch.empty_strided(layout.size, layout.stride, dtype=layout.dtype).zero_()
            if (value := state.get(self.graph.tensor_names[tensor])) is not None:
                found[tensor].copy_(value.detach())
        return found

    def results(self) -> dict[int, Tensor]:
        """What one process alone gets in program order: the loss and other outputs, and what it changes."""
        given = self.given()
        outputs = self.program.run(range(self.graph.num_ops), given)
        return outputs | {t: given[t] for t in self.changed}

    @cached_property
    def changed(self) -> list[int]:
        """Tensors of variables that the step writes to: parameters, moments, buffers."""
        graph = self.graph
        variables = {t for v in graph.is_variable.nonzero()[0].tolist() for t in graph.outputs(v)}
        return sorted(
            {old for call in self.program.calls if call for old, _ in call.rewrites if old in variables}
        )
