"""Weights that come with the package: which a learner uses by itself, and what names there are."""

from pathlib import Path

import pytest

from opgym.agents.networks.shelf import Shelf
from opgym.agents.saved import AGENT_FILE
from opgym.errors import UnknownIdError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("mine", "mine-other", "mine-seed2", "mine-seed0", "ablations/mine-small"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / AGENT_FILE).write_text("{}")
    return tmp_path


def test_a_learner_uses_what_has_its_name_or_what_the_shelf_says(folder: Path) -> None:
    assert Shelf(folder).folder_of("shipped", "mine") == folder / "mine"
    assert Shelf(folder, {"mine": "mine-other"}).folder_of("shipped", "mine") == folder / "mine-other"
    assert Shelf(folder, {"mine": "not-there"}).folder_of("shipped", "mine") is None
    assert Shelf(folder).folder_of("shipped", "yours") is None


def test_trainings_of_one_agent_stand_together_and_ablations_apart(folder: Path) -> None:
    shelf = Shelf(folder)
    assert shelf.names() == ["mine", "mine-seed0", "mine-seed2", "mine-other"]
    assert shelf.names(ablations=True)[0] == "ablations/mine-small"
    assert shelf.folder_of("ablations/mine-small", "mine") == folder / "ablations" / "mine-small"


def test_unknown_weights_are_refused_with_the_nearest_names(folder: Path) -> None:
    with pytest.raises(UnknownIdError, match="did you mean mine-seed2"):
        Shelf(folder).folder_of("mine-sed2", "mine")
    assert Shelf(folder).folder_of(str(folder / "mine"), "yours") == folder / "mine"
