"""Records what torch executes: each operator becomes a node, each view another name of its storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from .costs import Call, accessed_bytes, flops
from .modules import ModuleTracker, Path
from .schemas import Traits, traits_of
from .tape import Invocation, Layout, Node, Part, State, Storage, Version

#: Attribute of a fake tensor that names its storage; a fake tensor dies with its last user, as a real one does.
_STORAGE = "_opgym_storage"
_DEVICE = torch.ops.prim.device.default
_CPU = torch.device("cpu")


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operator below autograd, in program order.

    In-place operators write a new version of a storage, so that every version has one producer.

    Attributes:
        nodes: What has been recorded.
        views: Calls that only made another name of a storage, by kind.
        constants: Tensors that the module brought along without registering them.
        direction: Of the ops that follow; one of ``DIRECTIONS``.
        home: The state that the ops that follow update.
        failed_in: The module and the operator that raised, once one has.
    """

    def __init__(self, tracker: ModuleTracker, *, keep_calls: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.nodes: list[Node] = []
        self.views: Counter[str] = Counter()
        self.constants: list[Version] = []
        self.direction = "forward"
        self.home: State | None = None
        self.failed_in: tuple[Path, str] | None = None
        self._tracker = tracker
        self._keep_calls = keep_calls
        # Real tensors, kept alive so that their ids stay theirs.
        self._real: dict[int, tuple[Tensor, Storage]] = {}

    def declare(self, tensor: Tensor, role: str, name: str) -> Version:
        """Makes a tensor known that exists before the step."""
        version = _source(tensor, role, name)
        setattr(tensor, _STORAGE, version.storage)
        return version

    def contents(self, tensor: Tensor) -> Version:
        """What the storage of a tensor holds now."""
        return self._storage(tensor).current

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func is _DEVICE:
            return _CPU
        keywords = kwargs or {}
        traits = traits_of(func)
        if traits.composite:
            with self:
                result = func.decompose(*args, **keywords)
            if result is not NotImplemented:
                return result
        try:
            result = func(*args, **keywords)
        except Exception:
            if self.failed_in is None:
                self.failed_in = (self._tracker.path(), traits.kind)
            raise
        self._note(func, traits, args, keywords, result)
        return result

    def _note(
        self,
        func: torch._ops.OpOverload,
        traits: Traits,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        result: Any,
    ) -> None:
        outputs = list(_tensors(result))
        if traits.view_of is not None or traits.renames:
            storage = self._storage(_argument(traits, args, kwargs, traits.view_of or 0))
            if traits.kind == "set":
                storage = self._storage(_argument(traits, args, kwargs, 1))
            for output in outputs:
                setattr(output, _STORAGE, storage)
            self.views[traits.kind] += 1
            return
        written = [t for i in traits.written for t in _tensors(_argument(traits, args, kwargs, i))]
        if traits.written_if is not None and _argument(traits, args, kwargs, traits.written_if[0]):
            written += [t for i in traits.written_if[1] for t in _tensors(_argument(traits, args, kwargs, i))]
        fresh = [t for t in outputs if not any(t is w for w in written)]
        if not fresh and not written:
            return  # a check, or a number
        read = self._read(traits, args, kwargs, written)
        call = Call(traits, args, kwargs, fresh if fresh else written)
        position = len(self.nodes)
        reads = list(dict.fromkeys(storage.current for _, storage in read))
        rewritten = list(dict.fromkeys(self._storage(t) for t in written))
        invocation = None
        if self._keep_calls:
            replaced = tuple(storage.current for storage in rewritten)
            invocation = Invocation(
                func, self._parts(args), {k: self._parts(v) for k, v in kwargs.items()}, replaced
            )
        writes = [self._fresh(tensor, position) for tensor in fresh]
        cost = accessed_bytes(call)
        if cost is None:
            needed = [r for r in read if not (traits.overwrites and any(r[0] is w for w in written))]
            cost = _bytes_read(needed) + sum(_size(t) for t in (*fresh, *written))
        writes += [self._rewrite(storage, written, position) for storage in rewritten]
        self.nodes.append(
            Node(
                kind=traits.kind,
                reads=reads,
                writes=writes,
                rewritten=rewritten,
                flops=flops(call),
                accessed_bytes=cost,
                elementwise=traits.pointwise,
                path=self.home.path if self.home is not None else self._tracker.path(),
                direction=self.direction,
                home=self.home,
                invocation=invocation,
            )
        )

    def _read(
        self, traits: Traits, args: tuple[Any, ...], kwargs: Mapping[str, Any], written: list[Tensor]
    ) -> list[tuple[Tensor, Storage]]:
        """Tensors whose contents an operator needs, with their storages.

        Where it overwrites a part of a storage, that is the rest of it.
        """
        read: list[tuple[Tensor, Storage]] = []
        values = [*enumerate(args), *((traits.names.index(k), v) for k, v in kwargs.items())]
        for i, value in values:
            if i in traits.unread:
                continue
            for tensor in _tensors(value):
                if not isinstance(tensor, FakeTensor) and tensor.dim() == 0 and id(tensor) not in self._real:
                    continue  # a Python number in disguise
                storage = self._storage(tensor)
                covered = traits.overwrites and _size(tensor) == storage.bytes
                if not (covered and any(tensor is w for w in written)):
                    read.append((tensor, storage))
        return read

    def _parts(self, value: Any) -> Any:
        """Arguments with what their tensors look at now."""
        if isinstance(value, Tensor):
            if not isinstance(value, FakeTensor) and value.dim() == 0 and id(value) not in self._real:
                return value.item()
            return Part(self._storage(value).current, Layout.of(value))
        if isinstance(value, (list, tuple)):
            return type(value)(self._parts(v) for v in value)
        return value

    def _storage(self, tensor: Tensor) -> Storage:
        storage: Storage | None = getattr(tensor, _STORAGE, None)
        if storage is None and id(tensor) in self._real:
            storage = self._real[id(tensor)][1]
        if storage is None:
            version = _source(tensor, "constant", "")
            self.constants.append(version)
            storage = version.storage
            self._real[id(tensor)] = (tensor, storage)
        return storage

    def _fresh(self, tensor: Tensor, producer: int) -> Version:
        storage = Storage(tensor.untyped_storage().nbytes())
        setattr(tensor, _STORAGE, storage)
        return storage.write(tensor, producer)

    def _rewrite(self, storage: Storage, written: list[Tensor], producer: int) -> Version:
        old = storage.current
        tensor = next(t for t in written if self._storage(t) is storage)
        version = storage.write(tensor, producer)
        if _size(tensor) != storage.bytes:  # a part of it: the whole is what is live
            version.layout = old.layout
        return version


def _source(tensor: Tensor, role: str, name: str) -> Version:
    version = Storage(tensor.untyped_storage().nbytes()).write(tensor, -1)
    version.role, version.name = role, name
    return version


def _argument(traits: Traits, args: tuple[Any, ...], kwargs: Mapping[str, Any], position: int) -> Any:
    return args[position] if position < len(args) else kwargs.get(traits.names[position])


def _tensors(value: Any) -> Iterator[Tensor]:
    """Tensors in an argument or a result of an operator."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _bytes_read(read: Iterable[tuple[Tensor, Storage]]) -> int:
    """What a call reads: of each storage the views, never more than all of it."""
    views: dict[Storage, dict[int, int]] = {}
    for tensor, storage in read:
        views.setdefault(storage, {})[id(tensor)] = _size(tensor)
    return sum(min(storage.bytes, sum(sizes.values())) for storage, sizes in views.items())


def _size(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
