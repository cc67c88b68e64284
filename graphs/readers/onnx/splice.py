"""Puts the branch that is always taken in the place of its If."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto, NodeProto

from .model import copy_fields, nodes_of, subgraphs


def splice_ifs(model: ModelProto, taken: Mapping[int, str]) -> ModelProto:
    """Returns a model in which some Ifs are replaced by one of their branches.

    Names of a branch that are used elsewhere get a suffix. The branch's results get the names of the If's
    outputs by ``Identity`` nodes.

    Args:
        model: The model; it is left as it is.
        taken: For the index of each If, the attribute of the branch to take.
    """
    result = ModelProto()
    copy_fields(model, result, skip=("graph",))
    copy_fields(model.graph, result.graph, skip=("node",))
    used = set(_all_names(model.graph))
    for index, node in enumerate(model.graph.node):
        if index in taken:
            _splice(result.graph, node, dict(subgraphs(node))[taken[index]], used)
        else:
            result.graph.node.append(node)
    return result


def _splice(graph: GraphProto, node: NodeProto, branch: GraphProto, used: set[str]) -> None:
    own = [t.name for t in branch.initializer] + [s.values.name for s in branch.sparse_initializer]
    own += [name for inner in branch.node for name in inner.output if name]
    renamed: dict[str, str] = {}
    for name in own:
        # Each of these names is in `used` once for itself: another branch or scope may use it too.
        fresh, count = f"{name}:{node.output[0]}", 0
        while fresh in used:
            count += 1
            fresh = f"{name}:{node.output[0]}:{count}"
        used.add(fresh)
        renamed[name] = fresh
    for tensor in branch.initializer:
        copy = graph.initializer.add()
        copy.CopyFrom(tensor)
        copy.name = renamed[tensor.name]
    for sparse in branch.sparse_initializer:
        copied = graph.sparse_initializer.add()
        copied.CopyFrom(sparse)
        copied.values.name = renamed[sparse.values.name]
    for info in (*branch.value_info, *branch.output):
        if info.name in renamed:
            declared = graph.value_info.add()
            declared.CopyFrom(info)
            declared.name = renamed[info.name]
    for inner in branch.node:
        added = graph.node.add()
        added.CopyFrom(inner)
        _rename(added, renamed)
    for info, output in zip(branch.output, node.output, strict=True):
        if output:
            graph.node.add(op_type="Identity", input=[renamed.get(info.name, info.name)], output=[output])


def _rename(node: NodeProto, renamed: Mapping[str, str]) -> None:
    """Renames what a node reads and writes, and what its bodies take from around them."""
    node.input[:] = [renamed.get(name, name) for name in node.input]
    node.output[:] = [renamed.get(name, name) for name in node.output]
    for _, body in subgraphs(node):
        _rename_body(body, renamed)


def _rename_body(body: GraphProto, renamed: Mapping[str, str]) -> None:
    own = {info.name for info in body.input} | {t.name for t in body.initializer}
    own |= {name for inner in body.node for name in inner.output}
    outer = {old: new for old, new in renamed.items() if old not in own}
    for inner in body.node:
        inner.input[:] = [outer.get(name, name) for name in inner.input]
        for _, deeper in subgraphs(inner):
            _rename_body(deeper, outer)
    for info in body.output:
        info.name = outer.get(info.name, info.name)


def _all_names(graph: GraphProto) -> Iterator[str]:
    for node in nodes_of(graph):
        yield from node.output
        for _, body in subgraphs(node):
            yield from (info.name for info in body.input)
            yield from (t.name for t in body.initializer)
    yield from (info.name for info in graph.input)
    yield from (t.name for t in graph.initializer)
