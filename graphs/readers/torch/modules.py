"""Which module is running: layers of forward ops, and through autograd's numbers those of backward ops."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as module_hooks

Path = tuple[str, ...]


class ModuleTracker:
    """Follows the calls of modules.

    Autograd numbers its nodes in the order in which forward ops make them, so the number of a node tells which
    module was running when it was made.
    """

    def __init__(self, root: nn.Module) -> None:
        self._path: dict[int, Path] = {
            id(m): tuple(p for p in name.split(".") if p) for name, m in root.named_modules()
        }
        self._running: list[Path] = []
        # From which number on which module made the nodes.
        self._first_number: list[int] = []
        self._maker: list[Path] = []

    @property
    def running(self) -> Path:
        """The innermost module that runs now; empty: the outermost one, or none."""
        return self._running[-1] if self._running else ()

    def path(self) -> Path:
        """The module that the op running now belongs to."""
        if not self._running:
            node = torch._C._current_autograd_node()
            if node is not None:
                return self._maker_of(node._sequence_nr())
        return self.running

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Follows all calls of modules within the block."""
        enter = module_hooks.register_module_forward_pre_hook(self._enter)
        leave = module_hooks.register_module_forward_hook(self._leave, always_call=True)
        try:
            yield
        finally:
            enter.remove()
            leave.remove()
            self._running.clear()

    def _enter(self, module: nn.Module, args: Any) -> None:
        self._running.append(self._path.get(id(module), self.running))
        self._note()

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        if self._running:
            self._running.pop()
        self._note()

    def _note(self) -> None:
        self._first_number.append(torch._C._autograd._get_sequence_nr())
        self._maker.append(self.running)

    def _maker_of(self, number: int) -> Path:
        position = bisect_right(self._first_number, number) - 1
        return self._maker[position] if position >= 0 else ()
