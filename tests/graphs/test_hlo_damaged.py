"""HLO text that is cut off, contradicts itself, or is made to hang a reader: one clear error, in time."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from opgym.errors import ImportFailedError, OpgymError
from opgym.graphs.readers import read
from opgym.graphs.readers.hlo import read_hlo, read_hlo_text

from .hlo_texts import ADD, DATA, imported, module

SMALL = module("%x = f32[4,8] parameter(0)\n%y = f32[4,8] negate(%x)\nROOT %z = f32[4,8] tanh(%y)")


def test_every_beginning_of_a_file_is_refused() -> None:
    text = (DATA / "rnn.hlo.txt").read_text().rstrip()
    for end in range(0, len(text), 37):
        with pytest.raises(ImportFailedError):
            read_hlo_text(text[:end])
    read_hlo_text(text)


def test_a_file_that_ends_within_a_computation_says_so() -> None:
    text = (DATA / "rnn.hlo.txt").read_text()
    cut = text[: text.rindex("ROOT")]
    with pytest.raises(ImportFailedError, match=r"line \d+: the file ends within computation %main"):
        read_hlo_text(cut, source="rnn.txt")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("ROOT %y = f32[4] sneeze(%x)", "line 6: %y: unknown instruction 'sneeze'"),
        ("ROOT %y = f32[4] negate(%q)", "line 6: %y reads %q, which %main does not define"),
        ("ROOT %y = f32[5] negate(%x)", r"negate of f32\[4\] gives f32\[5\]"),
        ("ROOT %y = f32[4] negate(%x, %x)", "negate has 2 operands; expected 1"),
        ("ROOT %y = f32[4] negate(f32[5] %x)", r"reads %x as f32\[5\]; it is f32\[4\]"),
        ("ROOT %y = f32[4] negate(tanh(%x))", "is no operand"),
        ("ROOT %y = f99[4] negate(%x)", "unknown element type 'f99'"),
        ("ROOT %y = f32[?] negate(%x)", "a size without bound"),
        ("ROOT %y = f32[-4] negate(%x)", "has the size '-4'"),
        ("ROOT %y = f32[4]{1} negate(%x)", "has the layout '1'; expected 1 axes"),
        ("ROOT %y = negate(%x)", "expected a shape such as"),
        ("ROOT %y = f32[4]", "expected a shape such as|expected an opcode"),
        ("%y = f32[4] negate(%x)\n%y = f32[4] tanh(%x)", "line 7: %y is defined twice"),
        ("ROOT %y = f32[4] negate(%x)\nROOT %z = f32[4] tanh(%x)", "has a second ROOT"),
        ("ROOT %y = f32[2,3] reshape(%x)", "elements must stay"),
        ("ROOT %y = f32[2,3] bitcast(%x)", r"\(128 bits\) gives f32\[2,3\] \(192 bits\)"),
        ("ROOT %y = f32[4] dot(%x, %x), lhs_contracting_dims={0}", r"contracts sizes \[4\] and \[\]"),
        ("ROOT %y = f32[4] dot(%x, %x), lhs_contracting_dims={3}", "of a shape of 1 axes"),
        ("ROOT %y = f32[4,4] broadcast(%x), dimensions={0,1}", "broadcast of"),
        ("ROOT %y = f32[9] concatenate(%x, %x), dimensions={0}", "concatenate of"),
        ("ROOT %y = f32[4] get-tuple-element(%x), index=0", "expected a tuple"),
        ("%t = (f32[4]) tuple(%x)\nROOT %y = f32[4] get-tuple-element(%t), index=1", "of a tuple of 1"),
        ("ROOT %t = (f32[4], f32[4]) tuple(%x)", "a tuple of 1 values is said to be"),
        ("%k = f32[] constant(0)\nROOT %y = f32[4] reduce(%x, %k), dimensions={0}, to_apply=%add",
         r"reduce of f32\[4\] over axes \(0,\) gives f32\[4\]"),
        ("%k = f32[] constant(0)\nROOT %y = f32[] reduce(%x, %k), dimensions={0}",
         "names no computation as to_apply"),
        ("ROOT %y = f32[4] fusion(%x), kind=kLoop, calls=%nothing", "calls %nothing, which the module does not"),
        ("ROOT %y = f32[4] fusion(%x), kind=kLoop", "fusion names 0 computations"),
        ("ROOT %y = f32[] fusion(%x, %x), kind=kLoop, calls=%add", r"%a of %add is f32\[4\]; expected f32\[\]"),
        ("ROOT %y = f32[] call(%x), to_apply=%add", "has 2 parameters and is called with 1 values"),
        ("ROOT %y = f32[4] while(%x), body=%add", "while names no condition"),
        ("ROOT %y = f32[4] negate(%x), metadata={op_name=\"open}", "a string is not closed|never closed"),
        ("ROOT %y = f32[4] negate(%x), dimensions=", "expected an instruction|has no value"),
        ("%p = f32[4] parameter(2)\nROOT %y = f32[4] add(%x, %p)", "number 1 is missing or there twice"),
        ("ROOT %y = f32[4] negate(%x) and more", "expected an instruction or '}'"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_named(entry: str, message: str) -> None:
    with pytest.raises(ImportFailedError, match=message):
        imported(f"%x = f32[4] parameter(0)\n{entry}", functions="" if "%add" not in entry else ADD)


@pytest.mark.parametrize(
    ("image", "kernel", "out", "rest", "message"),
    [
        ("f32[2,5,5,4]", "f32[3,3,3,8]", "f32[2,5,5,8]", "window={size=3x3}", "4 channels in 1 groups"),
        ("f32[2,5,5,4]", "f32[3,3,4,8]", "f32[2,5,5,9]", "window={size=3x3}", "convolution of"),
        ("f32[2,5,5,4]", "f32[3,3,4,8]", "f32[2,5,5,8]", "window={size=3}", "1 axes over 2 spatial"),
        ("f32[2,5,5,4]", "f32[3,3,4,8]", "f32[2,5,5,8]", "window={size=3x3 stride=0x1}", "is none"),
        ("f32[2,5,5,4]", "f32[3,3,4,8]", "f32[2,5,5,8]", "window={size=3x3 pad=1}", "different lengths"),
        ("f32[2,5,5,4]", "f32[3,3,4,8]", "f32[2,5,5,8]", "window={size=3xq}", "malformed"),
        ("f32[2,5,5]", "f32[3,3,4,8]", "f32[2,5,5,8]", "window={size=3x3}", "by dim_labels"),
    ],
)
def test_convolutions_that_cannot_be(image: str, kernel: str, out: str, rest: str, message: str) -> None:
    line = f"ROOT %y = {out} convolution(%x, %k), {rest}, dim_labels=b01f_01io->b01f"
    with pytest.raises(ImportFailedError, match=message):
        imported(f"%x = {image} parameter(0)\n%k = {kernel} parameter(1)\n{line}")
    with pytest.raises(ImportFailedError, match="dim_labels='nonsense'"):
        imported(
            f"%x = {image} parameter(0)\n%k = {kernel} parameter(1)\n{line.replace('b01f_01io->b01f', 'nonsense')}"
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected HLO text"),
        ("HloModule", "expected HLO text"),
        ("HloModule m", "the module has no computations"),
        ("HloModule m\n\nnonsense", "expected a computation"),
        ("HloModule m\n\nENTRY %e (x: f32[2]) f32[2] {\n}", "expected '->'"),
        ("HloModule m\n\nENTRY %e (x: f32[2]) -> f32[2] {\n}\n", "computation %e is empty"),
        (SMALL + SMALL.split("\n\n")[1].replace("%main", "%other"), "a second ENTRY"),
        (SMALL + SMALL.split("\n\n")[1].replace("ENTRY ", ""), "a second computation is called %main"),
        (SMALL.replace("ENTRY ", ""), "none of 1 computations is marked ENTRY"),
        (module("ROOT %x = f32[4] parameter(0)"), "has no ops"),
    ],
)
def test_modules_that_are_none(text: str, message: str) -> None:
    with pytest.raises(ImportFailedError, match=message):
        read_hlo_text(text)


def test_computations_that_call_each_other_are_refused() -> None:
    functions = """%f (a: f32[4]) -> f32[4] {
      %a = f32[4] parameter(0)
      ROOT %b = f32[4] call(%a), to_apply=%g
    }
    %g (c: f32[4]) -> f32[4] {
      %c = f32[4] parameter(0)
      ROOT %d = f32[4] call(%c), to_apply=%f
    }
    """
    with pytest.raises(ImportFailedError, match=r"call each other in a cycle: %[fg] -> %[fg] -> %[fg]"):
        imported("%x = f32[4] parameter(0)\nROOT %y = f32[4] call(%x), to_apply=%f", functions)


def _doubling(levels: int) -> str:
    """Each function calls the one before twice."""
    functions = "%f0 (a: f32[4]) -> f32[4] {\n %a = f32[4] parameter(0)\n ROOT %b = f32[4] negate(%a)\n}\n"
    for level in range(1, levels):
        functions += (
            f"%f{level} (a: f32[4]) -> f32[4] {{\n %a = f32[4] parameter(0)\n"
            f" %b = f32[4] call(%a), to_apply=%f{level - 1}\n"
            f" ROOT %c = f32[4] call(%b), to_apply=%f{level - 1}\n}}\n"
        )
    return module(f"%x = f32[4] parameter(0)\nROOT %y = f32[4] call(%x), to_apply=%f{levels - 1}", functions)


def test_calls_that_double_at_each_level() -> None:
    assert read_hlo_text(_doubling(8)).graph.num_ops == 2**7
    with pytest.raises(ImportFailedError, match="grow to more than 3,000,000 instructions"):
        read_hlo_text(_doubling(30))
    with pytest.raises(ImportFailedError, match="too large"):
        read_hlo_text(_doubling(200))


def test_large_tuples_read_again_and_again() -> None:
    count = 6_000
    shape = f"({', '.join(['f32[1]'] * count)})"
    lines = ["%x = f32[1] parameter(0)", f"%t = {shape} tuple({', '.join(['%x'] * count)})"]
    lines += [f'%c{i} = f32[1] custom-call(%t), custom_call_target="f"' for i in range(count)]
    started = time.process_time()
    with pytest.raises(ImportFailedError, match="read more than 20,000,000 tensors"):
        imported("\n".join(lines))
    assert time.process_time() - started < 10


def test_long_chains_of_tokens_stay_short() -> None:
    count = 2_000
    lines = ["%x = f32[1] parameter(0)", "%a0 = token[] after-all()", "%y0 = f32[1] negate(%x)"]
    for i in range(count):
        lines.append(f"%o{i} = token[] outfeed(%x, %a{i}), outfeed_shape=f32[1]")
        lines.append(f"%p{i} = token[] outfeed(%x, %a0), outfeed_shape=f32[1]")
        lines.append(f"%a{i + 1} = token[] after-all(%a{i}, %o{i}, %p{i})")
        lines.append(f"%y{i + 1} = f32[1] add-dependency(%y{i}, %p{i})")
    graph = imported("\n".join([*lines, f"ROOT %r = f32[1] negate(%y{count})"])).graph
    assert len(graph.input_tensor) < 30 * count
    assert 2 * count < graph.num_ops < 2.3 * count


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("f32[" + "9" * 30 + "]", "at most 18 digits"),
        ("f32[" + ",".join(["999999999999"] * 5) + "]", r"2\^63|too large"),
        ("f32[3000000000000000000]", "at most 18 digits|too large"),
        ("f32[" + ",".join("1" * 200) + "]", "has 200 axes; at most 64"),
        ("(" * 200 + "f32[1]" + ")" * 200, "nested deeper than 64"),
        ("f32[900000000,900000000]", "add up|too large|at most"),
    ],
)
def test_hostile_shapes(shape: str, message: str) -> None:
    with pytest.raises(ImportFailedError, match=message):
        imported(
            f"%x = {shape} parameter(0)\n%y = {shape} copy(%x)\n%z = {shape} copy(%y)\nROOT %r = {shape} copy(%z)"
        )


LONG = 400_000


@pytest.mark.parametrize(
    "text",
    [
        "HloModule m" + "/*" * LONG,
        'HloModule m, a="' + r"\"" * LONG,
        "// " + 'x"' * LONG,
        "HloModule m, a=" + "{" * LONG,
        "HloModule m, a=" + "{}" * LONG,
        "HloModule m" + ", a={b" * LONG,
        "HloModule m\n" + "FileNames " * LONG,
        module("%x = f32[" + "1," * LONG + "1] parameter(0)"),
        module("%x = f32[4] parameter(0)\n%y = f32[4] add(" + "%x," * LONG + "%x)"),
        module("%x = " + "(" * LONG),
        module("%x = f32[4] constant(" + "{" * LONG + "}" * LONG + ")"),
        module('%x = f32[4] negate(%x), metadata={op_name="' + "\\\\" * LONG),
        module("%" + "a" * LONG + " = "),
    ],
    ids=range(13),
)
def test_nothing_takes_more_than_linear_time(text: str) -> None:
    started = time.process_time()
    with pytest.raises(ImportFailedError):
        read_hlo_text(text)
    assert time.process_time() - started < 5


def test_a_long_chain_is_read_in_time() -> None:
    count = 30_000
    lines = ["%x0 = f32[8] parameter(0)"]
    lines += [
        f'%x{i + 1} = f32[8] negate(%x{i}), metadata={{op_name="f/l_{i % 50}/n"}}' for i in range(count)
    ]
    started = time.process_time()
    graph = imported("\n".join(lines), attributes=", is_scheduled=true").graph
    assert graph.num_ops == count
    assert time.process_time() - started < 15


def test_damage_of_any_kind_is_an_error_of_ours() -> None:
    rng = random.Random(4)
    texts = [path.read_text() for path in sorted(DATA.glob("*.hlo.txt"))]
    pieces = [
        "{",
        "}",
        "(",
        ")",
        '"',
        "%",
        "=",
        ",",
        "0",
        "99",
        "ROOT ",
        "[]",
        "f32[",
        "while(",
        "index=7",
        "\n",
    ]
    refused = 0
    for _ in range(250):
        text = rng.choice(texts)
        for _ in range(rng.choice((1, 1, 3))):
            at = rng.randrange(len(text))
            length = rng.choice((0, 1, 5))
            text = text[:at] + rng.choice(pieces) + text[at + length :]
        try:
            read_hlo_text(text)
        except OpgymError:
            refused += 1
    assert refused > 100


def test_files_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"HloModule m\n\xff\xfe")
    with pytest.raises(ImportFailedError, match="not UTF-8 text"):
        read(path)
    with pytest.raises(ImportFailedError, match="no such file"):
        read_hlo(tmp_path / "absent")
    with pytest.raises(ImportFailedError, match="is a folder"):
        read_hlo(tmp_path)
    for start in ("module @jit_f attributes {mhlo.num_partitions = 1 : i32} {", '#loc = loc("x")\nmodule'):
        path.write_text(start)
        with pytest.raises(ImportFailedError, match=r"StableHLO or .*as_text\(dialect='hlo'\)"):
            read(path)
    path.write_bytes(b"\xef\xbb\xbf\n // of a test\n" + SMALL.encode())
    assert read(path).graph.num_ops == 2
