"""Tables of GDP's reproduction: figures by hand from made-up runs."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from opgym.runs.reproduce.gdp import methods
from opgym.runs.reproduce.gdp.tables import Table, ablation, batch, generalization, one, tables, unscreened
from opgym.runs.reproduce.gdp.workloads import unscreened as unscreened_rows

from .made import Row, measured, row, rules, workload

#: A core row with three seeds, one with one, and a control.
CORE, NVLINK, CONTROL = "gnmt-2l on 2xP100", "gnmt-2l on 2xP100@nvlink", "wavenet-4x36 on 4xP100"
#: Two held-out rows.
HELD, OTHER = "wavenet-2x18 on 2xP100@nvlink", "inception-v3-b64 on 2xP100@nvlink"


@pytest.fixture(autouse=True)
def empty_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods.SHELF, "folder", tmp_path / "no weights")


def _by(table: Table) -> Mapping[tuple[str, str, str], Mapping[str, Any]]:
    found = {(line["task"], line["method"], line["metric"]): line for line in table.lines}
    assert len(found) == len(table.lines)
    return found


def _geometric(*values: float) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


ONE: list[Row] = [
    *rules(CORE, human=200.0), *rules(NVLINK, human=100.0), *rules(CONTROL, human=100.0),
    row(CORE, "gdp", [[1, 250.0], [50, 180.0], [150, 100.0]], 0, spent=200),
    row(CORE, "gdp", [[1, None], [120, 150.0]], 1, spent=200),
    row(CORE, "gdp", None, 2, spent=200),
    row(NVLINK, "gdp", [[2, 90.0]], spent=200),
    row(CONTROL, "gdp", [[1, 110.0]], spent=200),
    row(CORE, "hdp", [[10, 210.0], [120, 180.0]], 0, spent=200),
    row(CORE, "hdp", [[40, 160.0]], 1, spent=200),
    row(CORE, "hdp", [[60, 140.0]], 2, spent=200),
    row(NVLINK, "hdp", [[20, 80.0]], spent=200),
    row(CORE, "annealing@100", [[1, 300.0], [90, 190.0]], 0, spent=100),
]  # fmt: skip


def test_a_row_tells_the_mean_over_seeds_that_fit_and_how_many_do_not() -> None:
    by = _by(one(measured(ONE, tables=("one",))))
    cell = by[f"one/{CORE}", "gdp@5000", "step_time_ms"]
    assert (cell["value"], cell["low"], cell["high"], cell["n"]) == (125e-6, 100e-6, 150e-6, 3)
    assert by[f"one/{CORE}", "gdp@5000", "out_of_memory"]["value"] == 1
    best = workload(CORE).case.best_known
    assert best is not None
    assert by[f"one/{CORE}", "gdp@5000", "ratio_to_best_known"]["value"] == pytest.approx(125 / best)
    assert by[f"one/{CORE}", "gdp@100", "step_time_ms"]["value"] == 180e-6
    assert by[f"one/{CORE}", "gdp@1", "out_of_memory"]["value"] == 2
    assert by[f"one/{CORE}", "human-expert", "step_time_ms"]["low"] is None
    assert (f"one/{NVLINK}", "annealing@100", "step_time_ms") not in by


def test_the_portfolio_is_the_best_heuristic_with_the_evaluations_of_all() -> None:
    by = _by(one(measured(ONE, tables=("one",))))
    assert by[f"one/{CORE}", "portfolio", "step_time_ms"]["value"] == 200e-6
    assert by[f"one/{CORE}", "portfolio", "evaluations"]["value"] == 12
    assert by["one/all", "portfolio", "improvement_over:human-expert"]["value"] == 0
    without = [each for each in ONE if each["method"] != "heft"]
    assert "portfolio" not in one(measured(without, tables=("one",))).columns


def test_improvements_are_means_of_rows_over_seeds_with_the_same_seed() -> None:
    by = _by(one(measured(ONE, tables=("one",))))
    over_human = by["one/all", "gdp@5000", "improvement_over:human-expert"]
    rows = [((1 - 100 / 200) + (1 - 150 / 200)) / 2, 1 - 90 / 100, 1 - 110 / 100]
    assert over_human["value"] == pytest.approx(sum(rows) / 3)
    assert over_human["n"] == 3
    assert over_human["low"] is None  # two families are too few for an interval
    tasks = by["one/tasks", "gdp@5000", "improvement_over:human-expert"]
    assert tasks["value"] == pytest.approx(sum(rows[:2]) / 2)
    over_hdp = by["one/all", "gdp@5000", "improvement_over:hdp"]
    seeds = ((1 - 100 / 180) + (1 - 150 / 160)) / 2
    assert over_hdp["value"] == pytest.approx((seeds + (1 - 90 / 80)) / 2)
    assert over_hdp["n"] == 2


def test_after_few_evaluations_learners_are_compared_with_as_few() -> None:
    by = _by(one(measured(ONE, tables=("one",))))
    early = by["one/pcie", "gdp@100", "improvement_over:hdp"]
    assert early["value"] == pytest.approx(1 - 180 / 210)  # with the other seeds one of both has nothing yet
    searched = by["one/all", "annealing@100", "improvement_over:hdp"]
    assert searched["value"] == pytest.approx(1 - 190 / 210)
    assert by["one/pcie", "metis", "improvement_over:hdp"]["value"] == pytest.approx(
        1 - (400 / 180 + 400 / 160 + 400 / 140) / 3
    )


def test_speed_is_told_with_those_that_never_arrive() -> None:
    by = _by(one(measured(ONE, tables=("one",))))
    missed = by["one/all", "gdp@5000", "never_reaches:hdp"]
    assert (missed["value"], missed["n"]) == (2, 4)
    seeds = (120 / 50, 40 / 120)
    assert by["one/all", "gdp@5000", "search_speedup_over:hdp"]["value"] == pytest.approx(_geometric(*seeds))
    most = by["one/all", "gdp@5000", "search_speedup_at_most_over:hdp"]
    core = _geometric(*seeds, 60 / 200)
    assert most["value"] == pytest.approx(_geometric(core, 20 / 200))
    assert ("one/all", "human-expert", "never_reaches:hdp") not in by
    assert ("one/all", "gdp@100", "never_reaches:hdp") not in by


def test_what_is_not_asked_for_is_not_told() -> None:
    table = one(measured(ONE, tables=("one",), methods=("gdp",), rows=("gnmt-2l-train on 2xP100:",)))
    assert {line["method"] for line in table.lines} == {f"gdp@{cut}" for cut in methods.CUTS}
    assert {line["task"] for line in table.lines} >= {f"one/{CORE}", "one/all", "one/pcie"}
    assert not any(line["task"] == "one/nvlink" for line in table.lines)


def test_intervals_draw_families() -> None:
    human = {
        "rnnlm-2l on 2xP100@nvlink": 110.0, "gnmt-2l on 2xP100@nvlink": 120.0, "wavenet-2x18 on 2xP100@nvlink": 130.0,
        "transformer-xl-8l on 8xP100": 140.0, "inception-v3-b64 on 2xP100": 150.0,
        "amoebanet-a on 4xP100@nvlink": 160.0,
    }  # fmt: skip
    rows = [each for label, value in human.items() for each in rules(label, value, 100.0)]
    by = _by(one(measured(rows, tables=("one",), methods=("portfolio",))))
    gain = by["one/all", "metis", "improvement_over:human-expert"]
    assert gain["n"] == 6
    assert gain["value"] == pytest.approx(sum(1 - 100 / value for value in human.values()) / 6)
    assert 1 - 100 / 110 < gain["low"] < gain["value"] < gain["high"] < 1 - 100 / 160


# --- Trained weights

TRAINED: list[Row] = [
    *rules(HELD, human=200.0), *rules(OTHER, human=100.0),
    row(HELD, "gdp", [[1, 300.0], [80, 150.0]], spent=100), row(OTHER, "gdp", [[50, 80.0]], spent=100),
    row(HELD, "hdp", [[1, 180.0]]), row(OTHER, "hdp", [[1, 90.0]]),
    row(HELD, "gdp-unseen-size zero-shot", 190.0, spent=1, key="a"),
    row(OTHER, "gdp-unseen-size zero-shot", 120.0, spent=1, key="b"),
    row(HELD, "gdp-unseen-size fine-tuned", [[1, 190.0], [20, 140.0]], spent=40, key="c"),
    row(OTHER, "gdp-unseen-size fine-tuned", [[1, 120.0], [30, 100.0]], spent=40, key="d"),
    row(HELD, "gdp-unseen-family zero-shot", 190.0, spent=1, key="e", seen=True),
]  # fmt: skip


def test_trained_weights_beside_what_begins_with_nothing() -> None:
    by = _by(generalization(measured(TRAINED, tables=("generalization",))))
    tuned, task = "gdp-unseen-size fine-tuned", "generalization/all"
    gain = by[task, tuned, "improvement_over:gdp"]
    assert gain["value"] == pytest.approx(((1 - 140 / 150) + (1 - 100 / 80)) / 2)
    saved = by[task, tuned, "evaluations_saved_over:gdp"]
    assert (saved["value"], saved["n"]) == (pytest.approx(1 - 20 / 80), 1)
    most = by[task, tuned, "evaluations_saved_at_most_over:gdp"]
    assert most["value"] == pytest.approx(((1 - 20 / 80) + (1 - 40 / 50)) / 2)
    assert by[task, tuned, "never_reaches:gdp"]["value"] == 1
    near = by[task, "gdp-unseen-size zero-shot", "improvement_over:fine-tuned"]
    assert near["value"] == pytest.approx(((1 - 190 / 140) + (1 - 120 / 100)) / 2)
    beats = by[task, tuned, "beats_human_and_hdp"]
    assert (beats["value"], beats["n"]) == (1, 2)  # not on the other, where it is level with the human expert
    assert (task, "gdp-unseen-size zero-shot", "improvement_over:portfolio") in by


def test_what_was_learned_from_is_not_held_out() -> None:
    table = generalization(measured(TRAINED, tables=("generalization",)))
    assert "gdp-unseen-family zero-shot" not in table.columns


def test_trainings_of_one_name_are_counted_once() -> None:
    spread = [
        row(HELD, "gdp-unseen-size zero-shot", 190.0, key="a", weights="x"),
        row(HELD, "gdp-unseen-size-seed0 zero-shot", 210.0, key="b", weights="y"),
        row(HELD, "gdp-unseen-size-seed1 zero-shot", 190.0, key="c", weights="x"),
        row(HELD, "gdp-unseen-size-seed2 zero-shot", 150.0, key="d", weights="z"),
    ]
    by = _by(generalization(measured(spread, tables=("generalization",))))
    best = workload(HELD).case.best_known
    assert best is not None
    line = by["generalization/all", "gdp-unseen-size zero-shot", "ratio_of_trainings"]
    assert line["n"] == 3
    ends = [value * best for value in (line["low"], line["value"], line["high"])]
    assert ends == pytest.approx([150.0, 190.0, 210.0])


def test_the_batch_is_the_rows_that_were_learned_from() -> None:
    rows = [
        *rules(HELD, human=200.0), *rules(OTHER, human=100.0),
        row(HELD, "gdp-batch zero-shot", 150.0, key="a", seen=True),
        row(OTHER, "gdp-batch zero-shot", 150.0, key="b"),
    ]  # fmt: skip
    table = batch(measured(rows, tables=("batch",)))
    assert [each.label for each in table.workloads] == [HELD]
    gain = _by(table)["batch/all", "gdp-batch zero-shot", "improvement_over:human-expert"]
    assert (gain["value"], gain["n"]) == (0.25, 1)
    assert batch(measured(rows[:6], tables=("batch",))).workloads == []


def test_the_unscreened_sample_is_beside_its_best_heuristics() -> None:
    labels = [each.label for each in unscreened_rows()[:3]]
    rows = [each for label in labels for each in rules(label, human=100.0, others=200.0)]
    zero_shot = "gdp-unseen-family zero-shot"
    rows += [row(labels[0], zero_shot, 110.0, key="a"), row(labels[1], zero_shot, 400.0, key="b"),
             row(labels[2], zero_shot, 50.0, key="c", seen=True)]  # fmt: skip
    by = _by(unscreened(measured(rows, tables=("generalization",))))
    ratio = by["unscreened/all", zero_shot, "ratio_to_portfolio"]
    assert (ratio["value"], ratio["n"]) == (pytest.approx(_geometric(1.1, 4.0)), 2)
    assert by["unscreened/all", "metis", "ratio_to_portfolio"]["value"] == pytest.approx(2.0)
    assert not any(task == "unscreened/tasks" for task, _, _ in by)


# --- Ablations


def test_losses_are_paired_by_seed() -> None:
    label, other = "rnnlm-4l on 4xP100", "gnmt-4l on 4xP100"
    rows = [
        *(row(label, "gdp", value, seed) for seed, value in enumerate((100.0, 110.0, 120.0))),
        *(row(label, "gdp-no-attention", value, seed) for seed, value in enumerate((120.0, 121.0, 126.0))),
        *(row(other, "gdp", value, seed) for seed, value in enumerate((200.0, 100.0, None))),
        *(row(other, "gdp-no-attention", value, seed) for seed, value in enumerate((220.0, 90.0, 100.0))),
    ]  # fmt: skip
    by = _by(ablation(measured(rows, tables=("ablation",))))
    losses = [0.2, 0.1, 0.05, 0.1, -0.1]
    whole = by["ablation/all", "gdp-no-attention", "loss"]
    assert (whole["value"], whole["n"]) == (pytest.approx(sum(losses) / 5), 5)
    assert whole["low"] < whole["value"] < whole["high"]
    of_row = by[f"ablation/{label}", "gdp-no-attention", "loss"]
    assert (of_row["value"], of_row["n"], of_row["low"]) == (pytest.approx(0.35 / 3), 3, None)
    assert not any(name == "gdp-no-superposition" for _, name, _ in by)


def test_tables_that_are_not_asked_for_are_not_made() -> None:
    assert [table.name for table in tables(measured([], tables=("ablation", "generalization")))] == [
        "ablation", "generalization", "unscreened",
    ]  # fmt: skip
