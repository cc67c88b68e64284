"""What the names tell that JAX leaves in the metadata of instructions: modules, gradients, arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping

_OP_NAME = re.compile(r'\bop_name="([^"\\]*+(?:\\.[^"\\]*+)*+)"')
_WRAPPED = re.compile(r"([\w.\-<>]+)\((.*)\)")
#: Transformations of a function that wrap the name of a module.
_TRANSFORMATIONS = ("jvp", "transpose", "vmap", "remat", "checkpoint", "rematted_computation", "custom_jvp")
#: Parts of control flow, which are no modules.
_CONTROL_FLOW = frozenset(
    ("while", "body", "cond", "closed_call", "core_call", "checkpoint", "rematted_computation",
     "custom_jvp_call", "custom_vjp_call", "branch_0_fun", "branch_1_fun")
)  # fmt: skip
_PARAMETER = re.compile(
    r"(?:^|[^a-z0-9])(?:params?|parameters?|weights?|variables?|kernel|bias|embedding|batch_stats|"
    r"opt_state|momentum|mu|nu)(?:$|[^a-z0-9])",
    re.IGNORECASE,
)


def op_name(attributes: Mapping[str, str]) -> str:
    """The name that the framework gave, e.g. ``jit(step)/transpose(jvp(Net))/Dense_0/dot_general``."""
    metadata = attributes.get("metadata")
    match = _OP_NAME.search(metadata) if metadata else None
    return match[1].replace("\\'", "'").replace('\\"', '"') if match else ""


def scopes(name: str) -> tuple[str, ...]:
    """Modules in a name of that kind, outermost first; functions and the primitive itself are none."""
    found = []
    for part in name.split("/")[:-1]:
        scope = part
        for _ in range(8):
            match = _WRAPPED.fullmatch(scope)
            if match is None:
                break
            scope = match[2] if match[1] in _TRANSFORMATIONS else ""
        if scope and scope not in _CONTROL_FLOW and "(" not in scope and ")" not in scope:
            found.append(scope)
    return tuple(found)


def is_backward(name: str) -> bool:
    """Whether an op computes a gradient."""
    return "transpose(" in name


def is_parameter(name: str) -> bool:
    """Whether an argument of the program looks like weights or state, by its path in the arguments."""
    return _PARAMETER.search(name) is not None
