"""Tuning: stages on disjoint training graphs, a check on validation graphs, and settings that load."""

import json

import numpy as np
import pytest

from opgym import conf
from opgym.agents import make
from opgym.datasets import synthetic
from opgym.errors import InvalidProblemError
from opgym.problems import Budget
from opgym.runs.reproduce.headroom import FAMILIES, Task
from opgym.runs.reproduce.tuning import UNTUNED, Stage, as_yaml, grid, run

#: One setting that only draws mutants, and one that works.
_BAD = {"population": 100, "elites": 1, "mutants": 99, "bias": 0.7, "mutant_beta": [1.0, 1.0]}
_GOOD = {"population": 50, "elites": 10, "mutants": 2, "bias": 0.7, "mutant_beta": [1.0, 1.0]}
_STAGES = (Stage(1, 1, 2), Stage(1, 2, 1))
_CHECK = Stage(1, 2, 1)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("tuning") / "rows.jsonl"
    document = run(_STAGES, _CHECK, [_BAD, _GOOD], rows_path=path, evaluations=600)
    return document, path


def test_the_grid_is_legal_and_holds_the_untuned_settings_once():
    settings = grid()
    assert len({json.dumps(setting) for setting in settings}) == len(settings) == 108
    for setting in settings:
        make("brkga", **{**setting, "mutant_beta": tuple(setting["mutant_beta"])})
    assert settings.count(dict(UNTUNED)) == 1


def test_the_better_setting_wins(small):
    document, _ = small
    assert document["tuned"] == _GOOD
    first = document["stages"][0]
    assert (first["graphs"], first["settings"]) == (4, 2)
    assert [kept["setting"]["population"] for kept in first["kept"]] == [50, 100]
    assert first["kept"][0]["gain"] > first["kept"][1]["gain"] + 0.03


def test_no_graph_serves_twice_and_the_check_is_on_validation_graphs(small):
    rows = [json.loads(line) for line in small[1].read_text().splitlines()]
    seeds = [int(row["trial"]["graph"].rpartition("seed=")[2]) for row in rows]
    assert len(rows) == 3 * len(FAMILIES) * 2
    by_stage = [set(seeds[i * 8 : (i + 1) * 8]) for i in range(3)]
    assert len(set.union(*by_stage)) == 3
    assert [synthetic.split_of(min(stage)) for stage in by_stage] == ["train", "train", "validation"]


def test_gains_are_those_of_the_rows(small):
    document, path = small
    rows = [json.loads(line) for line in path.read_text().splitlines()][-8:]
    gains = [1 - np.array(row["values"][1]) / np.array(row["values"][0]) for row in rows]
    everything = document["check"][-1]
    assert (everything["devices"], everything["family"]) == ("all", "all")
    assert everything["estimate"] == pytest.approx(np.mean(gains))
    assert everything["clusters"] == 4
    of_two = next(x for x in document["check"] if x["devices"] == 2 and x["family"] == "ws")
    expected = [gain for row, gain in zip(rows, gains, strict=True) if row["trial"]["devices"] == 2]
    assert of_two["estimate"] == pytest.approx(np.mean(expected[FAMILIES.index("ws")]))


def test_values_are_those_of_the_solver(small):
    row = json.loads(small[1].read_text().splitlines()[0])
    trial = row["trial"]
    task = Task(trial["graph"], trial["family"], trial["devices"], trial["seeds"], trial["scale"])
    for setting, values in zip(trial["settings"], row["values"], strict=True):
        solver = make("brkga", **{**setting, "mutant_beta": tuple(setting["mutant_beta"])})
        found = solver.solve(task.problem(), Budget(evaluations=600), np.random.default_rng(0))
        assert values == [found.outcome.value]


def test_rows_are_reused_whatever_the_workers(small):
    document, path = small
    before = path.read_bytes()
    steps = []
    again = run(
        _STAGES, _CHECK, [_BAD, _GOOD], rows_path=path, evaluations=600, workers=2,
        progress=lambda *step: steps.append(step),
    )  # fmt: skip
    assert again == document
    assert path.read_bytes() == before
    assert steps[-1] == (24, 24)


def test_the_settings_load_by_name_of_the_file(small, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(as_yaml(small[0], "opgym reproduce tuning"))
    assert conf.agent(path) == make("brkga", **{**_GOOD, "mutant_beta": (1.0, 1.0)})


@pytest.mark.parametrize(("stages", "settings"), [((), [_GOOD]), (_STAGES, [])])
def test_nothing_to_choose_from_is_refused(stages, settings):
    with pytest.raises(InvalidProblemError, match="expected some of each"):
        run(stages, _CHECK, settings)
