"""Bits per element of every dtype that a graph may hold."""

from __future__ import annotations

from ..errors import InvalidGraphError

#: Bits per element; sub-byte types are packed, as ONNX stores them.
BITS = {
    "float64": 64, "float32": 32, "float16": 16, "bfloat16": 16,
    "float8e4m3fn": 8, "float8e4m3fnuz": 8, "float8e5m2": 8, "float8e5m2fnuz": 8, "float8e8m0": 8,
    "float8e3m4": 8, "float8e4m3": 8, "float8e4m3b11fnuz": 8,
    "float6e2m3": 6, "float6e3m2": 6, "float4e2m1": 4, "complex64": 64, "complex128": 128,
    "int64": 64, "int32": 32, "int16": 16, "int8": 8, "int4": 4, "int2": 2, "int1": 1,
    "uint64": 64, "uint32": 32, "uint16": 16, "uint8": 8, "uint4": 4, "uint2": 2, "uint1": 1,
    "bool": 8, "string": 64,
}  # fmt: skip


def storage_bytes(dtype: str, elements: int) -> int:
    """Bytes of a dense tensor, packed to whole bytes (a string counts as one 8-byte pointer).

    Raises:
        InvalidGraphError: The dtype is unknown; nothing is guessed.
    """
    if dtype not in BITS:
        raise InvalidGraphError(f"unknown dtype {dtype!r}; expected one of {', '.join(BITS)}")
    return (BITS[dtype] * elements + 7) // 8
