"""Calls, loops and branches of HLO text: what they cost and where they work."""

from __future__ import annotations

import pytest

from opgym.errors import ImportFailedError, UnknownIdError

from .hlo_texts import SCHEDULED, imported, op, peak, reads, writes


def test_calls_are_inlined_wherever_they_stand() -> None:
    result = imported(
        """
        %x = f32[8] parameter(0)
        %p = f32[8] call(%x), to_apply=%outer
        ROOT %r = f32[8] call(%p), to_apply=%outer
        """,
        """%inner (a: f32[8]) -> f32[8] {
          %a = f32[8] parameter(0)
          ROOT %b = f32[8] negate(%a)
        }
        %outer (c: f32[8]) -> f32[8] {
          %c = f32[8] parameter(0)
          %d = f32[8] call(%c), to_apply=%inner
          ROOT %e = f32[8] tanh(%d)
        }
        """,
    )
    assert result.graph.op_names == ("b", "e", "b", "e")
    assert result.report.folded["call"] == 4
    assert [len(result.graph.inputs(o)) for o in range(4)] == [1] * 4


LOOP = """%condition (s: (s32[], f32[100], f32[100], f32[50])) -> pred[] {
  %s = (s32[], f32[100], f32[100], f32[50]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] constant(7)
  ROOT %go = pred[] compare(%i, %n), direction=LT
}
%body (t: (s32[], f32[100], f32[100], f32[50])) -> (s32[], f32[100], f32[100], f32[50]) {
  %t = (s32[], f32[100], f32[100], f32[50]) parameter(0)
  %j = s32[] get-tuple-element(%t), index=0
  %one = s32[] constant(STEP)
  %next = s32[] add(%j, %one)
  %h = f32[100] get-tuple-element(%t), index=1
  %w = f32[100] get-tuple-element(%t), index=2
  %k = f32[50] get-tuple-element(%t), index=3
  %wide = f32[400] broadcast(%h), dimensions={0}
  %g = f32[100] slice(%wide), slice={[0:100]}
  %m = f32[100] multiply(%g, %w)
  ROOT %u = (s32[], f32[100], f32[100], f32[50]) tuple(%next, %m, %w, %k)
}
""".replace("broadcast(%h), dimensions={0}", "concatenate(%h, %h, %h, %h), dimensions={0}")
RUN = """
    %zero = s32[] constant(0)
    %x = f32[100] parameter(0)
    %v = f32[100] parameter(1)
    %q = f32[50] parameter(2)
    %h0 = f32[100] negate(%x)
    %state = (s32[], f32[100], f32[100], f32[50]) tuple(%zero, %h0, %v, %q)
    %loop = (s32[], f32[100], f32[100], f32[50]) while(%state), condition=%condition, body=%bodyCONFIG
    %y = f32[100] get-tuple-element(%loop), index=1
    %same = f32[100] get-tuple-element(%loop), index=2
    ROOT %r = f32[100] add(%y, %same)
"""
BODY_FLOPS, CONDITION_FLOPS = 100 + 1, 1
BODY_BYTES = (4 + 4 + 4) + (4 * 400 + 1600) + 2 * 400 + 3 * 400
CONDITION_BYTES = 4 + 4 + 1


@pytest.mark.parametrize(
    ("step", "configuration", "turns"),
    [
        ("1", "", 7),
        ("2", "", 4),
        ("1", ', backend_config={"known_trip_count":{"n":"5"}}', 5),
        ("0", "", None),
    ],
)
def test_a_loop_is_one_op_of_all_its_turns(step: str, configuration: str, turns: int | None) -> None:
    result = imported(RUN.replace("CONFIG", configuration), LOOP.replace("STEP", step))
    graph = result.graph
    times = 1 if turns is None else turns
    loop = op(graph, "loop")
    assert graph.op_flops[loop] == times * (BODY_FLOPS + CONDITION_FLOPS)
    assert graph.op_accessed_bytes[loop] == times * (BODY_BYTES + CONDITION_BYTES)
    said = f"{turns} turns" if turns is not None else "an unknown number of turns, counted as one"
    assert f"one op of {said} of {BODY_FLOPS} flops" in result.report.subgraphs[0]
    # what the body leaves alone keeps its tensor
    assert reads(graph, "r") == ["loop:1", "v"]
    assert writes(graph, "loop") == ["loop:0", "loop:1"]
    # the wide tensor with its part; what comes out of the body is the loop's own result
    assert graph.op_workspace_bytes[loop] == 1600 + 400


def test_a_scheduled_loop_works_in_the_storage_of_its_state() -> None:
    graph = imported(RUN.replace("CONFIG", ""), LOOP.replace("STEP", "1"), SCHEDULED).graph
    assert reads(graph, "r") == ["h0", "loop:end", "v"]
    assert graph.tensor_bytes[graph.tensor_names.index("loop:end")] == 0
    assert writes(graph, "loop") == ["loop:0", "loop:end"]  # the counter began in a constant
    assert peak(graph) == 400 + 4 + 2000  # h0, the counter, the workspace of a turn


def test_loops_within_loops_multiply_and_work_in_the_same_storage() -> None:
    state = "(s32[], f32[100])"

    def loop(level: int, turns: int, work: str) -> str:
        return f"""%c{level} (p: {state}) -> pred[] {{
          %p = {state} parameter(0)
          %i = s32[] get-tuple-element(%p), index=0
          %n = s32[] constant({turns})
          ROOT %go = pred[] compare(%i, %n), direction=LT
        }}
        %b{level} (q: {state}) -> {state} {{
          %q = {state} parameter(0)
          %j = s32[] get-tuple-element(%q), index=0
          %one = s32[] constant(1)
          %next = s32[] add(%j, %one)
          %h = f32[100] get-tuple-element(%q), index=1
          {work}
          ROOT %r = {state} tuple(%next, %m)
        }}
        """

    inner = loop(0, 5, "%m = f32[100] negate(%h)")
    nest = f"""%zero = s32[] constant(0)
          %start = {state} tuple(%zero, %h)
          %w = {state} while(%start), condition=%c0, body=%b0
          %m = f32[100] get-tuple-element(%w), index=1"""
    entry = f"""
        %x = f32[100] parameter(0)
        %zero = s32[] constant(0)
        %h = f32[100] tanh(%x)
        %start = {state} tuple(%zero, %h)
        %w = {state} while(%start), condition=%c1, body=%b1
        ROOT %m = f32[100] get-tuple-element(%w), index=1
    """
    functions = inner + loop(1, 3, nest)
    for attributes, peak_bytes in ((SCHEDULED, 400 + 4 + 4), ("", 2 * 400 + 4 + 4)):
        result = imported(entry, functions, attributes)
        graph = result.graph
        assert graph.op_flops.tolist() == [100, 3 * (1 + 1 + 5 * (100 + 1 + 1))]
        assert [text.split(" of")[0] for text in result.report.subgraphs] == ["while w: one op"] * 2
        assert peak(graph) == peak_bytes  # the state, the counters of both loops; a copy without a schedule


def test_branches_are_one_op_of_the_larger() -> None:
    text = """
        %p = pred[] parameter(0)
        %x = f32[64,64] parameter(1)
        ROOT %r = f32[64,64] conditional(%p, %x, %x), true_computation=%square, false_computation=%wave
    """
    functions = """%square (a: f32[64,64]) -> f32[64,64] {
      %a = f32[64,64] parameter(0)
      %b = f32[64,64] negate(%a)
      ROOT %c = f32[64,64] dot(%b, %a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }
    %wave (d: f32[64,64]) -> f32[64,64] {
      %d = f32[64,64] parameter(0)
      ROOT %e = f32[64,64] sine(%d)
    }
    """
    result = imported(text, functions)
    assert result.graph.op_flops.tolist() == [2 * 64**3 + 64**2]
    assert result.graph.op_workspace_bytes.tolist() == [64 * 64 * 4]
    assert result.report.subgraph_policy == "opaque"
    assert result.report.subgraphs == (
        "conditional r: one op of 528,384 flops, those of the larger of 2 branches",
    )
    by_index = text.replace(
        "true_computation=%square, false_computation=%wave", "branch_computations={%square, %wave}"
    ).replace("pred[]", "s32[]")
    assert imported(by_index, functions).graph.op_flops.tolist() == [2 * 64**3 + 64**2]
    with pytest.raises(ImportFailedError, match="loops or branches: conditional r"):
        imported(text, functions, subgraphs="reject")
    with pytest.raises(UnknownIdError, match="did you mean inline"):
        imported(text, functions, subgraphs="inlin")
