"""Nested plain data with arrays and tensors in two files: ``NAME.safetensors`` and ``NAME.json``; never pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from ...errors import OpgymError
from ...graphs.closed_json import read_json

#: Keys of the objects that stand for what JSON has no word for.
_ARRAY, _TENSOR, _TUPLE, _ITEMS = "array", "tensor", "tuple", "items"
_TAGS = (_ARRAY, _TENSOR, _TUPLE, _ITEMS)


def write_tree(folder: Path, name: str, tree: Any) -> None:
    """Writes a tree of mappings, lists, tuples, texts, numbers, truth values, ``None``, arrays and tensors."""
    arrays: dict[str, NDArray[Any]] = {}
    document = _packed(tree, arrays)
    save_file(arrays, folder / f"{name}.safetensors")
    (folder / f"{name}.json").write_text(json.dumps(document, allow_nan=False), encoding="utf-8")


def read_tree(folder: Path, name: str) -> Any:
    """Reads what :func:`write_tree` wrote, equal in every bit.

    Raises:
        OpgymError: A file is missing or damaged.
    """
    document = read_json(folder / f"{name}.json", OpgymError, "a tree of plain data")
    return _unpacked(document, read_arrays(folder / f"{name}.safetensors"), folder / f"{name}.json")


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays by name from a file of safetensors.

    Raises:
        OpgymError: It is missing or damaged.
    """
    try:
        return dict(load_file(path))
    except FileNotFoundError:
        raise OpgymError(f"{path}: no such file") from None
    except (SafetensorError, OSError, KeyError) as error:
        raise OpgymError(f"{path}: cannot be read as safetensors ({error})") from None


def _packed(tree: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    if isinstance(tree, torch.Tensor):
        return {_TENSOR: _stored(tree.detach().cpu().numpy(), arrays)}
    if isinstance(tree, np.ndarray | np.generic):
        return {_ARRAY: _stored(np.asarray(tree), arrays)}
    if isinstance(tree, Mapping):
        if all(isinstance(key, str) for key in tree) and not (len(tree) == 1 and set(tree) <= set(_TAGS)):
            return {key: _packed(value, arrays) for key, value in tree.items()}
        return {_ITEMS: [[_packed(key, arrays), _packed(value, arrays)] for key, value in tree.items()]}
    if isinstance(tree, tuple):
        return {_TUPLE: [_packed(value, arrays) for value in tree]}
    if isinstance(tree, list):
        return [_packed(value, arrays) for value in tree]
    if tree is None or isinstance(tree, str | bool | int | float):
        return tree
    raise TypeError(f"a tree holds plain data, not a {type(tree).__name__}")


def _stored(array: NDArray[Any], arrays: dict[str, NDArray[Any]]) -> str:
    name = str(len(arrays))
    arrays[name] = np.ascontiguousarray(array).reshape(array.shape)
    return name


def _unpacked(document: Any, arrays: Mapping[str, NDArray[Any]], where: Path) -> Any:
    if isinstance(document, list):
        return [_unpacked(value, arrays, where) for value in document]
    if not isinstance(document, dict):
        return document
    if len(document) == 1:
        ((tag, value),) = document.items()
        if tag in (_ARRAY, _TENSOR):
            if value not in arrays:
                raise OpgymError(f"{where}: names array {value!r:.60}, which is not there")
            # A copy: arrays from the file are views of its bytes.
            return arrays[value].copy() if tag == _ARRAY else torch.from_numpy(arrays[value].copy())
        if tag == _TUPLE:
            return tuple(_unpacked(item, arrays, where) for item in value)
        if tag == _ITEMS:
            return {_unpacked(k, arrays, where): _unpacked(v, arrays, where) for k, v in value}
    return {key: _unpacked(value, arrays, where) for key, value in document.items()}
