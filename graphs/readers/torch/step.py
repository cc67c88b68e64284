"""Runs one step of a module under a recorder: forward, backward, update."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from ....errors import ImportFailedError
from .failures import describe
from .fakes import Held, Inputs, fake_inputs, fake_like, faked
from .modules import ModuleTracker
from .optimizers import UPDATE_RULES, UpdateRule
from .recorder import Recorder
from .tape import State, Version

Loss = Callable[[Any], Tensor]


@dataclass
class Step:
    """What a step did.

    Attributes:
        recorder: Its ops.
        inputs: The inputs.
        outputs: What must survive it besides the states it changes.
        states: Parameters and buffers.
        unused: Names of parameters that get no gradient.
        notes: What was decided on the way.
    """

    recorder: Recorder
    inputs: list[Version]
    outputs: list[Version]
    states: list[State]
    unused: list[str]
    notes: list[str]


@dataclass(frozen=True)
class StepOptions:
    """See :func:`opgym.graphs.readers.torch.from_torch`."""

    train: bool
    optimizer: str | None
    loss: Loss | None
    batch: int | None
    keep_calls: bool = False


def run_step(module: nn.Module, example: Any, options: StepOptions, name: str) -> Step:
    """Runs a step on fake tensors; the module is left as it was.

    Raises:
        ImportFailedError: It cannot be run without values, or not be differentiated.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    tracker = ModuleTracker(module)
    recorder = Recorder(tracker, keep_calls=options.keep_calls)
    with faked(module, mode) as held, _portable(), _training(module, options.train):
        inputs = fake_inputs(module, example, mode, options.batch)
        run = _Run(module, inputs, held, options, recorder, mode)
        try:
            with tracker.watching():
                return run.step()
        except ImportFailedError as error:
            raise ImportFailedError(f"{name}: {error}") from error
        except Exception as error:
            raise describe(name, error, recorder.failed_in) from error


class _Run:
    def __init__(
        self,
        module: nn.Module,
        inputs: Inputs,
        held: list[Held],
        options: StepOptions,
        recorder: Recorder,
        mode: FakeTensorMode,
    ) -> None:
        self.module = module
        self.inputs = inputs
        self.held = held
        self.options = options
        self.recorder = recorder
        self.mode = mode
        self.notes: list[str] = []

    def step(self) -> Step:
        recorder = self.recorder
        states = {h.name: self._state(h) for h in self.held}
        moments = self._moments()
        inputs = [recorder.declare(tensor, "input", name) for name, tensor in self.inputs.tensors]
        with self.mode, recorder, nullcontext() if self.options.train else torch.no_grad():
            result = self.module(*self.inputs.args, **self.inputs.kwargs)
            self._adopt_replaced_buffers(states)
            if self.options.train:
                outputs, unused = self._train(result, states, moments)
            else:
                outputs, unused = [recorder.contents(t) for t in tensors_in(result)], []
        if not outputs:
            raise ImportFailedError("the module returns no tensor")
        for version in outputs:
            version.is_output = True
        return Step(recorder, inputs, outputs, list(states.values()), unused, self.notes)

    def _state(self, held: Held) -> State:
        is_parameter = held.kind == "parameter"
        version = self.recorder.declare(held.fake, "parameter" if is_parameter else "constant", held.name)
        state = State(held.name, held.path, is_parameter, [version])
        version.storage.state = state
        return state

    def _adopt_replaced_buffers(self, states: Mapping[str, State]) -> None:
        """A buffer that forward replaced by another tensor (``self.cache = new``) is written to."""
        for held in self.held:
            module, name = held.place
            now = getattr(module, name, None)
            if held.kind == "buffer" and now is not held.fake and isinstance(now, Tensor):
                if now.shape != held.fake.shape:
                    self.notes.append(
                        f"buffer {held.name} is replaced by one of another size: taken as an output"
                    )
                    self.recorder.contents(now).is_output = True
                    continue
                self.recorder.home = states[held.name]
                with torch.no_grad():
                    held.fake.copy_(now)
                self.recorder.home = None

    def _moments(self) -> dict[str, list[Tensor]]:
        """What the optimizer keeps beside each parameter, by the parameter's name."""
        if not self.options.train or self.options.optimizer is None:
            return {}
        names = UPDATE_RULES[self.options.optimizer].moments
        return {
            h.name: [fake_like(h.fake, self.mode) for _ in names] for h in self.held if h.fake.requires_grad
        }

    def _train(
        self, result: Any, states: Mapping[str, State], moments: Mapping[str, list[Tensor]]
    ) -> tuple[list[Version], list[str]]:
        loss = self._loss(result)
        trained = [h for h in self.held if h.kind == "parameter" and h.fake.requires_grad]
        if not trained:
            raise ImportFailedError(
                "no parameter requires a gradient, so there is nothing to train; use train=False"
            )
        if not loss.requires_grad:
            raise ImportFailedError(
                "the loss does not depend on any parameter that requires a gradient; pass loss=, a function "
                "of the module's result, or use train=False"
            )
        recorder = self.recorder
        recorder.direction = "backward"
        gradients = torch.autograd.grad(loss, [h.fake for h in trained], allow_unused=True)
        unused = [h.name for h, g in zip(trained, gradients, strict=True) if g is None]
        outputs = [recorder.contents(loss)]
        recorder.direction = "update"
        for held, gradient in zip(trained, gradients, strict=True):
            if gradient is None:
                continue
            if self.options.optimizer is None:
                version = recorder.contents(gradient)
                version.name = version.name or f"{held.name}.grad"
                outputs.append(version)
            else:
                rule = UPDATE_RULES[self.options.optimizer]
                self._update(held, gradient, states[held.name], rule, moments[held.name])
        return outputs, unused

    def _update(
        self, held: Held, gradient: Tensor, state: State, rule: UpdateRule, moments: list[Tensor]
    ) -> None:
        for name, moment in zip(rule.moments, moments, strict=True):
            version = self.recorder.declare(moment, "parameter", f"{held.name}.{name}")
            version.storage.state = state
            state.versions.append(version)
        self.recorder.home = state
        with torch.no_grad():
            rule.update(held.fake, gradient, moments)
        self.recorder.home = None

    def _loss(self, result: Any) -> Tensor:
        if self.options.loss is not None:
            loss = self.options.loss(result)
            if not isinstance(loss, Tensor) or loss.numel() != 1 or not loss.is_floating_point():
                what = f"{loss.dtype}{list(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
                raise ImportFailedError(f"loss= returned {what}; expected one real number as a tensor")
            return loss
        reals = [t for t in tensors_in(result) if t.is_floating_point()]
        if not reals:
            raise ImportFailedError(
                "the module returns no tensor of real numbers, so there is no loss; pass loss=, a function of "
                "the module's result, or use train=False"
            )
        if len(reals) > 1 or reals[0].dim():
            self.notes.append("no loss was given: it is the mean of each real output, summed")
        means = [t if t.dim() == 0 else t.mean() for t in reals]
        loss = means[0]
        for mean in means[1:]:
            loss = loss + mean
        return loss


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Tensors in the result of a module: in tuples, lists, dicts and dataclasses, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            yield from tensors_in(getattr(value, f.name))


@contextmanager
def _training(module: nn.Module, train: bool) -> Iterator[None]:
    """Training or evaluation mode within the block."""
    before = [(m, m.training) for m in module.modules()]
    module.train(train)
    try:
        yield
    finally:
        for m, mode in before:
            m.training = mode


class _FusedDropout(TorchFunctionMode):
    """Dropout as the one operator with a mask of flags that it is on GPUs; CPUs have three and a mask of reals."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        tensor: Any = args[0] if args else None
        if func is torch.dropout and len(args) == 3:
            probability, train, in_place = args[1], args[2], False
        elif func is functional.dropout and kwargs and len(args) == 1:
            probability, train, in_place = kwargs["p"], kwargs["training"], kwargs["inplace"]
        else:
            return func(*args, **(kwargs or {}))
        if train and 0 < probability < 1 and not in_place:
            return torch.native_dropout(tensor, probability, True)[0]
        return func(*args, **(kwargs or {}))


@contextmanager
def _portable() -> Iterator[None]:
    """Without kernels that exist on CPUs only, or that fuse whole layers."""
    # The setters beneath torch.backends: the context manager there warns about other devices.
    fused, one_dnn = torch.backends.mha.get_fastpath_enabled(), torch._C._get_mkldnn_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    torch._C._set_mkldnn_enabled(False)
    try:
        with _FusedDropout():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
        torch._C._set_mkldnn_enabled(one_dnn)
