"""Synthetic ids: what they mean, what is refused, and that they mean the same everywhere and for ever."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from opgym import datasets
from opgym.datasets import synthetic
from opgym.errors import ImportFailedError, UnknownIdError
from opgym.graphs.storage import check_structure

# A change of any of these is a new GENERATOR_VERSION (AUGMENTATION_VERSION for the last).
PINNED: dict[str, str] = {
    "synthetic/er?n=100&seed=0":
        "7d48384f40552cb1d7aa7423b4674aa6b2a75d2cfa7a19549dac4d33e02512b3",
    "synthetic/ba?n=100&seed=0":
        "cfd6673ced17a7a840e12d4381f478f978054250a92d5e2a0aa2c29e7898d52b",
    "synthetic/ws?n=100&seed=0":
        "32b4b76c0107ef6b2f5bfe80574baf6c080bf816b759ef30595504b176e8469a",
    "synthetic/sbm?n=100&seed=0":
        "f8d9f3b037de5b02cc823de6e1f4f7a7c2b7e93f7e8e0cd3433e5a426654a22d",
    "synthetic/layered?n=100&seed=0":
        "87bd5463a1ceac3f1a5ed1b0588b2979ca5b31bcf8991ad60d72281c154b7bb0",
    "synthetic/cells?n=100&seed=0":
        "fede9e135383903db4d93e2981c6e1b23aa1281042939c9a4b33abb24fa6528b",
    "synthetic/fork-join?n=100&seed=0":
        "d1bb1837005c2809a411e5d8b53967493ef54546e3a573ce71da0f09bce46ec5",
    "synthetic/er?seed=2999999&costs=normal":
        "a01ed21b42c71b6f60e8f62321eb52ce09645abf677ca47061cc85591d5119ac",
    "synthetic/ba?n=500&m=3&seed=1000000":
        "db9985d81440536f923127f578ee0b0aa786bc0f1e42ec174f313bbf084e234f",
    "synthetic/ws?n=64&k=6&p=1&seed=17":
        "ba818af49ac2f5b1fbb90f1d48840b1862c211a765e549fe03a476648250a6a1",
    "synthetic/sbm?n=130&k=7&p_in=.5&p_out=.01&seed=2":
        "8fa5547190e402b5fa848014f48f9149e595096f447b15d87bb406d71aba45dc",
    "synthetic/layered?n=5000&width=40&fan_in=6&skip=.5&seed=11":
        "44e193058e8055f4f3a4bb391ea6ea02728172a53d0178b721e5d7720af57407",
    "synthetic/cells?n=237&wiring=searched&nodes=20&seed=3":
        "f1514bd108304a5de26be6e83a7127f3d55404f994576902195028d1aadc24ba",
    "synthetic/fork-join?n=3000&branches=9&seed=8":
        "5cd2cb2ab19ffca5e83f1e270226977f141e08778e61f874e3ff2165c77926a8",
    "synthetic/er?n=100&seed=3#augment=7":
        "b1ad8d689f3ea1df3e744b4ee401e6338945b160ef2f89e8592f1f8be4c14c65",
}  # fmt: skip


@pytest.mark.parametrize("id", PINNED)
def test_an_id_means_the_same_graph_for_ever(id: str) -> None:
    assert datasets.load(id).fingerprint == PINNED[id]


def test_another_process_draws_the_same_graphs() -> None:
    code = (
        "import sys; from opgym import datasets as d; print(*(d.load(i).fingerprint for i in sys.argv[1:]))"
    )
    environment = os.environ | {"PYTHONHASHSEED": "123", "PYTHONSAFEPATH": "1"}
    run = subprocess.run(
        [sys.executable, "-c", code, *PINNED], capture_output=True, text=True, check=True, env=environment
    )
    assert run.stdout.split() == list(PINNED.values())


def test_ids_list_every_family_once_and_each_loads() -> None:
    ids = [id for id in datasets.ids() if id.startswith("synthetic/")]
    assert sorted(ids) == sorted(synthetic.ids())
    assert [id.partition("?")[0] for id in synthetic.ids()] == [f"synthetic/{f}" for f in synthetic.FAMILIES]
    for id in ids:
        graph = datasets.load(id)
        check_structure(graph)
        assert graph.num_ops == graph.num_tensors == 100


@pytest.mark.parametrize("family", synthetic.FAMILIES)
def test_the_name_of_a_graph_is_an_id_that_gives_it_again(family: str) -> None:
    graph = datasets.load(f"synthetic/{family}?seed=5")
    assert graph.name.startswith(f"synthetic/{family}?n=50-200&")
    assert graph.name.endswith(f"&costs=bytes&seed=5&version={synthetic.GENERATOR_VERSION}")
    again = datasets.load(graph.name)
    assert again.name == graph.name
    assert again == graph
    spelled_out = [f"{p.name}={p.default}" for p in synthetic.parameters_of(family) if p.name != "seed"]
    assert datasets.load(f"synthetic/{family}?seed=5&{'&'.join(reversed(spelled_out))}") == graph


def test_one_value_written_in_several_ways() -> None:
    for p in (".1", "0.1", "0.10", "00.100000000000"):
        assert datasets.load(f"synthetic/er?p={p}").name == datasets.load("synthetic/er?p=0.1").name
    assert datasets.load("synthetic/er?n=007") == datasets.load("synthetic/er?n=7")
    assert "n=60&" in datasets.load("synthetic/er?n=60-60").name
    assert [datasets.load(f"synthetic/er?p={p}&n=5").name.split("&")[1] for p in ("0", "1")] == ["p=0", "p=1"]


def test_a_span_of_sizes_is_drawn_evenly() -> None:
    sizes = [datasets.load(f"synthetic/fork-join?seed={seed}").num_ops for seed in range(400)]
    assert min(sizes) >= 50
    assert max(sizes) <= 200
    assert abs(np.mean(sizes) - 125) < 5 * 43.6 / 400**0.5
    assert len(set(sizes)) > 110
    small = [datasets.load(f"synthetic/fork-join?n=9-12&seed={seed}").num_ops for seed in range(100)]
    assert set(small) == {9, 10, 11, 12}


@pytest.mark.parametrize("family", synthetic.FAMILIES)
def test_seeds_and_families_give_different_graphs(family: str) -> None:
    graphs = [datasets.load(f"synthetic/{family}?n=60&seed={seed}") for seed in range(50)]
    assert len({graph.input_tensor.tobytes() for graph in graphs}) == 50


def test_the_cost_rule_changes_neither_structure_nor_sizes() -> None:
    by_bytes, normal = (datasets.load(f"synthetic/ws?seed=4&costs={rule}") for rule in ("bytes", "normal"))
    assert by_bytes.input_tensor.tolist() == normal.input_tensor.tolist()
    assert by_bytes.tensor_bytes.tolist() == normal.tensor_bytes.tolist()
    assert by_bytes.op_flops.tolist() != normal.op_flops.tolist()


def test_the_manual_lists_every_parameter() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "synthetic_graphs.md").read_text(encoding="utf-8")
    listed = [[cell.strip("` ") for cell in line.split("|")[1:-1]] for line in manual.splitlines()]
    of_families, of_all = [], set()
    for name, family in synthetic.FAMILIES.items():
        for parameter in synthetic.parameters_of(name):
            row = [parameter.name, parameter.default, parameter.expected, parameter.meaning]
            if parameter in family.parameters:
                of_families.append([name, *map(str, family.ops), *row])
            elif parameter.name != "n":
                of_all.add(tuple(row))
    assert [row for row in listed if len(row) == 7 and row[0] in synthetic.FAMILIES] == of_families
    assert of_all <= {tuple(row) for row in listed}
    for split, seeds in synthetic.SEEDS.items():
        assert [split, f"{seeds[0]:,} to {seeds[-1]:,}"] in listed


def test_report_states_version_and_all_parameters() -> None:
    imported = datasets.read("synthetic/sbm?n=80&seed=9")
    report = imported.report
    assert report.source == "synthetic/sbm?n=80&seed=9"
    assert (report.format, report.level) == ("synthetic", "synthetic")
    assert (report.ops, report.tensors, report.fingerprint) == (80, 80, imported.graph.fingerprint)
    assert "synthetic generator version 1" in report.notes[0]
    assert "?n=80&k=4&p_in=0.3&p_out=0.001&costs=bytes&seed=9&version=1" in report.notes[0]
    assert imported.cluster is None


@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("synthetic/fork_join?n=9", "did you mean synthetic/fork-join"),
        ("synthetic/", "unknown synthetic family"),
        ("synthetic/cells?node=9", "unknown parameter of synthetic/cells 'node'; did you mean nodes"),
        ("synthetic/er?N=100", "unknown parameter of synthetic/er 'N'; did you mean n"),
        ("synthetic/er?m=2", "unknown parameter of synthetic/er 'm'; known: costs, n, p, seed, version"),
        (
            "synthetic/cells?wiring=serched",
            "value of wiring in synthetic/cells 'serched'; did you mean searched",
        ),
        ("synthetic/er?costs=byte", "did you mean bytes"),
        ("er?n=100", "did you mean synthetic/er"),
        ("sbm", "did you mean synthetic/sbm"),
    ],
)
def test_a_wrong_name_suggests_the_right_one(id: str, message: str) -> None:
    with pytest.raises(UnknownIdError) as error:
        datasets.load(id)
    assert message in str(error.value)


WRONG_SIZES = ("0", "-1", "1.5", "1e3", "", "x", "20001", "200-50", "0-5", "5-", "5-20001", "１", "9" * 30)


@pytest.mark.parametrize("text", WRONG_SIZES)
def test_wrong_sizes_are_refused_with_the_range(text: str) -> None:
    expected = "expected a whole number from 1 to 20000, or a span" if text else "expected PARAMETER=VALUE"
    with pytest.raises(ImportFailedError, match=expected):
        datasets.load(f"synthetic/er?n={text}")


@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("synthetic/er?p=1.01", "p='1.01'; expected a decimal number from 0 to 1"),
        ("synthetic/er?p=-0.1", "expected a decimal number from 0 to 1"),
        ("synthetic/er?p=nan", "expected a decimal number from 0 to 1"),
        ("synthetic/er?p=1e-3", "expected a decimal number from 0 to 1"),
        ("synthetic/er?p=0.1234567890123", "at most 12 decimals"),
        ("synthetic/er?p=.", "expected a decimal number"),
        ("synthetic/er?seed=3000000", "seed='3000000'; expected a whole number from 0 to 2999999"),
        ("synthetic/er?version=2", "version='2'; expected 1"),
        ("synthetic/er?n=5&n=6", "n is given twice, as '5' and '6'"),
        ("synthetic/er?", "expected PARAMETER=VALUE"),
        ("synthetic/er?n", "'n'; expected PARAMETER=VALUE"),
        ("synthetic/er?n=5&", "''; expected PARAMETER=VALUE"),
        ("synthetic/ba?n=5&m=5", "expected more than m=5"),
        ("synthetic/ba?m=65", "expected a whole number from 1 to 64"),
        ("synthetic/ws?n=4&k=4", "expected an even k, below n"),
        ("synthetic/ws?k=3", "expected an even k, below n"),
        ("synthetic/sbm?n=3&k=4", "expected k up to n"),
        ("synthetic/er?n=20000&p=1", r"about 2e\+08 edges; at most 2e\+07"),
        ("synthetic/sbm?n=20000&k=2&p_in=1", r"edges; at most 2e\+07"),
        ("synthetic/cells?n=8", "expected a whole number from 9 to 100000"),
        ("synthetic/er?n=9#augmnt=7", "'augmnt=7' after '#'; expected augment=SEED"),
        ("synthetic/er?n=9#augment=x", "expected augment=SEED"),
        (
            "synthetic/er?n=9#augment=1000000000",
            "seed 1000000000; expected a whole number from 0",
        ),
    ],
)
def test_a_wrong_value_is_refused(id: str, message: str) -> None:
    with pytest.raises(ImportFailedError, match=message):
        datasets.load(id)


@pytest.mark.parametrize("option", ["dims", "trust", "shapes", "costs"])
def test_options_of_model_files_are_refused(option: str) -> None:
    with pytest.raises(ImportFailedError, match=f"{option} is given"):
        datasets.read("synthetic/er?n=9", **{option: {"batch": 8}})
    assert datasets.read("synthetic/er?n=9", subgraphs="opaque", strict=True).report.ops == 9


def test_splits_share_no_seed_and_leave_none_out() -> None:
    seeds = synthetic.SEEDS
    assert list(seeds) == ["train", "validation", "test"]
    ends = [(r.start, r.stop) for r in seeds.values()]
    assert ends == [(0, 1_000_000), (1_000_000, 2_000_000), (2_000_000, 3_000_000)]
    for split, seeds_of_split in seeds.items():
        assert synthetic.split_of(seeds_of_split[0]) == synthetic.split_of(seeds_of_split[-1]) == split
        assert datasets.load(f"synthetic/er?n=9&seed={seeds_of_split[-1]}").num_ops == 9
    for wrong in (-1, 3_000_000):
        with pytest.raises(ImportFailedError, match="expected a whole number from 0 to 2999999"):
            synthetic.split_of(wrong)
