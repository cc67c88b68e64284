"""Rows of ``opgym benchmark envs``: what they hold, who is held to which bar, and that all play the same episodes."""

import json
import time
from dataclasses import fields

import numpy as np
import pytest
from typer.testing import CliRunner

from opgym.benchmark import envs
from opgym.benchmark.envs import Row
from opgym.cli.app import app

MEASURED = [
    (env, observation, num_envs)
    for env in ("GraphPlacement-v0", "OpScheduling-v0")
    for observation, num_envs in (("node", 1), ("node", 3), ("dict", 3))
]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "OPS": 25, "NUM_ENVS": 3, "TURNS": 2, "PART": 7, "SINGLE_EPISODES": 2, "DICT_STEPS": 9, "DICT_TURNS": 1,
    }.items():  # fmt: skip
        monkeypatch.setattr(envs, name, value)


def test_the_command_prints_every_environment(small: None) -> None:
    result = CliRunner().invoke(app, ["benchmark", "envs", "--json"])
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)
    assert [(row["env"], row["observation"], row["num_envs"]) for row in rows] == MEASURED
    for row in rows:
        assert row.keys() == {field.name for field in fields(Row)}
        assert row["ops"] == 25
        assert row["steps_per_second"] > 0
        if row["num_envs"] == 1:
            assert row["ratio_to_sync"] is row["sync_steps_per_second"] is None
        else:
            assert row["ratio_to_sync"] == pytest.approx(
                row["steps_per_second"] / row["sync_steps_per_second"]
            )
        assert (row["within_bar"] is None) == (row["observation"] == "dict")


def test_the_table_shows_a_bar_that_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"env": "OpScheduling-v0", "observation": "node", "num_envs": 64, "ops": 1000, "steps_per_second": 499_000.4,
           "ratio_to_sync": 9.5, "sync_steps_per_second": 52_631.2, "bar_steps_per_second": 500_000, "bar_ratio": 10,
           "within_bar": False}  # fmt: skip
    monkeypatch.setattr(envs, "run", lambda progress: [row])
    cells = CliRunner().invoke(app, ["benchmark", "envs"]).stdout.strip().splitlines()[-1].split()
    assert cells == [
        "OpScheduling-v0",
        "node",
        "64",
        "1,000",
        "499,000",
        "500,000",
        "52,631",
        "9.50",
        "10.00",
        "no",
    ]


@pytest.mark.parametrize(
    ("rates", "ratios", "within"),
    [
        ((600_000, 1_000_000), (10, 10), [True, True]),
        ((1_000_000, 500_000), (10, 10), [True, True]),
        ((999_999, 999_998), (20, 20), [False, True]),  # one must reach a million
        ((3_000_000, 499_999), (20, 20), [True, False]),
        ((3_000_000, 3_000_000), (9.9, 10), [False, True]),
    ],
)
def test_bars_of_native_batches(
    rates: tuple[float, float], ratios: tuple[float, float], within: list[bool]
) -> None:
    rows = [Row(f"env{i}", "node", 64, 1000, rates[i], ratios[i], rates[i] / ratios[i]) for i in range(2)]
    others = [Row("env0", "dict", 64, 1000, 5.0, 1.0, 5.0), Row("env0", "node", 1, 1000, 29_999.0),
              Row("env1", "node", 1, 1000, 30_000.0)]  # fmt: skip
    judged = envs._with_bars(rows + others)
    assert [row.within_bar for row in judged] == [*within, None, False, True]
    assert [row.bar_ratio for row in judged] == [10, 10, None, None, None]
    assert sorted(row.bar_steps_per_second for row in judged[:2]) == [500_000, 1_000_000]
    assert judged[rates.index(max(rates))].bar_steps_per_second == 1_000_000


@pytest.mark.parametrize("env", envs.OPTIONS)
def test_all_play_the_same_whole_episodes(small: None, env: str) -> None:
    native, sync = (envs._make_vec(env, "node", mode) for mode in ("vector_entry_point", "sync"))
    actions = envs._draw_actions(native)
    assert actions.shape == (25, 3)
    assert len(np.unique(actions)) > 1
    ends = []
    for batch in (native, sync):
        step, outcomes = batch.step, []

        def spy(of_all: np.ndarray, step=step, outcomes=outcomes):
            returned = step(of_all)
            outcomes.append(returned[4].get("outcome"))
            return returned

        batch.step = spy
        assert len(envs._play(batch, actions, 25)) == 4  # parts of 7 steps
        # The last but one step ended the episodes, the last one began the next.
        assert [outcome is not None for outcome in outcomes] == [False] * 24 + [True, False]
        ends.append(outcomes[-2].tolist())
    assert ends[0] == ends[1]


def test_the_best_of_each_part_counts() -> None:
    turns = iter([[3.0, 1.0], [2.0, 5.0], [9.0, 4.0]])
    assert envs._best_of(3, [lambda: next(turns)]) == [2.0 + 1.0]


@pytest.mark.slow
def test_the_command_takes_less_than_100_s() -> None:
    began = time.process_time()
    result = CliRunner().invoke(app, ["benchmark", "envs", "--json"])
    assert result.exit_code == 0, result.stderr
    assert time.process_time() - began < 100
    assert all(row["ops"] == 1000 for row in json.loads(result.stdout))
