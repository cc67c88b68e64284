"""Checkpoints are whole or not there, whatever happens while one is written, and of the same training."""

import errno
import json
import logging
import multiprocessing
import os
import shutil
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from opgym.errors import InvalidRunError
from opgym.runs.train.checkpoints import CheckpointStore

TRAINING = {"agent": {"solver": "ppo", "options": {"gamma": 1.0}}, "seed": 0}


def write_state(steps):
    """What writes a checkpoint of some steps."""

    def write(folder):
        (folder / "state.json").write_text(json.dumps({"steps": steps}))
        (folder / "buffers").mkdir()
        (folder / "buffers" / "rewards.bin").write_bytes(bytes([steps % 256]) * 5_000)

    return write


def read_steps(checkpoint):
    steps = json.loads((checkpoint.folder / "state.json").read_text())["steps"]
    assert (checkpoint.folder / "buffers" / "rewards.bin").read_bytes() == bytes([steps % 256]) * 5_000
    assert steps == checkpoint.steps
    return steps


def filled(folder, *steps, training=TRAINING, **options):
    store = CheckpointStore(folder, training, **options)
    for at in steps:
        store.write(at, write_state(at))
    return store


def names(folder):
    return sorted(os.listdir(folder))


def snapshot(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_that_is_not_there_has_no_checkpoint_and_is_not_made(tmp_path):
    store = CheckpointStore(tmp_path / "checkpoints", TRAINING)
    assert store.newest is None
    assert store.resumed_from is None
    assert not (tmp_path / "checkpoints").exists()


def test_the_newest_comes_back_and_the_oldest_go(tmp_path):
    store = filled(tmp_path, 10, 200, 3_000, 999_999_999_999, 1_000_000_000_000)
    assert read_steps(store.newest) == 1_000_000_000_000
    assert names(tmp_path) == ["1000000000000", "999999999999"]
    again = CheckpointStore(tmp_path, TRAINING)
    assert again.newest == store.newest
    assert again.resumed_from == 1_000_000_000_000


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_as_many_stay_as_are_to_be_kept(tmp_path, keep):
    filled(tmp_path, 1, 2, 3, 4, keep=keep)
    assert names(tmp_path) == [f"{steps:012}" for steps in range(5 - keep, 5)]


def test_none_to_keep_is_refused(tmp_path):
    with pytest.raises(ValueError, match="keep=0"):
        CheckpointStore(tmp_path, TRAINING, keep=0)


def test_no_checkpoint_twice_or_backwards(tmp_path):
    store = filled(tmp_path, 10)
    for steps in (10, 9):
        with pytest.raises(ValueError, match=f"{steps} steps after that of 10"):
            store.write(steps, write_state(steps))
    assert names(tmp_path) == ["000000000010"]


def test_everything_else_is_done_before_a_checkpoint_appears(tmp_path):
    seen = []
    store = CheckpointStore(tmp_path, TRAINING)
    store.write(10, write_state(10), before=lambda: seen.append(names(tmp_path)))
    assert seen == [[".writing-000000000010"]]


def damage_flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def damage_cut(path):
    path.write_bytes(path.read_bytes()[:-2])


def damage_empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("file", ["state.json", "buffers/rewards.bin", "manifest.json"])
@pytest.mark.parametrize("damage", [damage_flip, damage_cut, damage_empty, Path.unlink])
def test_a_damaged_newest_falls_back_to_the_one_before_with_a_warning(tmp_path, caplog, file, damage):
    filled(tmp_path, 10, 20)
    damage(tmp_path / "000000000020" / file)
    with caplog.at_level(logging.WARNING):
        store = CheckpointStore(tmp_path, TRAINING)
    assert read_steps(store.newest) == 10
    (record,) = caplog.records
    assert "000000000020 is not used: " in record.message
    assert file in record.message
    assert names(tmp_path) == ["000000000010"], "the way is free to make it again"
    assert read_steps(store.write(20, write_state(20))) == 20


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"format": "opgym.checkpoint", "version": 1, "steps": NaN, "sha256": ""}',
        b'{"format": "opgym.checkpoint", "version": 1, "training": ' + b"[" * 900 + b"]" * 900 + b"}",
        b"9" * 10_000,
        b"\xff\xfe",
    ],
    ids=["nested", "nan", "nested less", "digits", "bytes"],
)
def test_so_does_one_whose_manifest_is_no_json(tmp_path, caplog, content):
    filled(tmp_path, 10, 20)
    (tmp_path / "000000000020" / "manifest.json").write_bytes(content)
    store = CheckpointStore(tmp_path, TRAINING)
    assert read_steps(store.newest) == 10
    assert "manifest.json is damaged" in caplog.text


def test_a_flipped_bit_of_a_manifest_is_never_taken_for_something_else(tmp_path):
    filled(tmp_path / "made", 10)
    whole = (tmp_path / "made" / "000000000010" / "manifest.json").read_bytes()
    refused = 0
    for at in range(0, len(whole), 5):
        copy = tmp_path / f"copy-{at}"
        shutil.copytree(tmp_path / "made", copy)
        changed = bytearray(whole)
        changed[at] ^= 1 << at % 7
        (copy / "000000000010" / "manifest.json").write_bytes(changed)
        if reads_as_the_same(whole, changed):
            assert CheckpointStore(copy, TRAINING).newest is not None
            continue
        refused += 1
        try:
            assert CheckpointStore(copy, TRAINING).newest is None, f"byte {at}"
        except InvalidRunError as error:
            if "version" not in str(error):  # that of another training would be the wrong thing to say
                raise
    assert refused > 50


def reads_as_the_same(one, other):
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return False


def test_a_file_too_many_and_a_link_are_damage(tmp_path, caplog):
    filled(tmp_path, 10, 20, 30, keep=3)
    (tmp_path / "000000000030" / "more").write_text("")
    state = tmp_path / "000000000020" / "state.json"
    state.rename(tmp_path / "elsewhere")
    state.symlink_to(tmp_path / "elsewhere")
    store = CheckpointStore(tmp_path, TRAINING)
    assert read_steps(store.newest) == 10
    assert "more does not belong to it" in caplog.text
    assert (tmp_path / "elsewhere").exists()


def test_all_damaged_means_from_the_beginning(tmp_path, caplog):
    filled(tmp_path, 10, 20)
    for name in names(tmp_path):
        damage_flip(tmp_path / name / "state.json")
    store = CheckpointStore(tmp_path, TRAINING)
    assert store.newest is None
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert names(tmp_path) == []


def test_what_is_no_checkpoint_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "000000000099").write_text("a file")
    store = filled(tmp_path, 10)
    assert CheckpointStore(tmp_path, TRAINING).newest == store.newest
    assert names(tmp_path) == ["000000000010", "000000000099", "notes.txt"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seed": 1}, r"\(seed was 0, is 1\)"),
        (
            {"agent": {"solver": "ppo", "options": {"gamma": 0.9}}},
            r"\(agent\.options\.gamma was 1\.0, is 0\.9\)",
        ),
        ({"agent": None}, r"\(agent was \{.*\}, is null\)"),
        ({"threads": None}, r"\(threads was absent, is null\)"),
    ],
)
def test_that_of_another_training_is_refused_and_nothing_is_touched(tmp_path, change, says):
    filled(tmp_path, 10, 20)
    (tmp_path / ".writing-000000000030").mkdir()
    damage_flip(tmp_path / "000000000020" / "state.json")
    before = snapshot(tmp_path), names(tmp_path)
    with pytest.raises(InvalidRunError, match=f"another training {says}; train with the same settings"):
        CheckpointStore(tmp_path, TRAINING | change)
    assert (snapshot(tmp_path), names(tmp_path)) == before


def test_settings_compare_as_the_file_has_them(tmp_path):
    filled(tmp_path, 10, training={"nets": (64, 64), "rate": np.float64(0.1), "folder": Path("x")})
    assert CheckpointStore(tmp_path, {"folder": "x", "rate": 0.1, "nets": [64, 64]}).newest is not None


def test_that_of_a_newer_version_is_refused_and_nothing_is_touched(tmp_path):
    filled(tmp_path, 10)
    manifest = tmp_path / "000000000010" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"version": 1', '"version": 2'))
    before = snapshot(tmp_path)
    with pytest.raises(InvalidRunError, match="version 2, and this opgym reads version 1"):
        CheckpointStore(tmp_path, TRAINING)
    assert snapshot(tmp_path) == before


def test_a_learner_that_fails_leaves_the_earlier_ones(tmp_path):
    store = filled(tmp_path, 10)

    def write(folder):
        write_state(20)(folder)
        raise RuntimeError("no such tensor")

    with pytest.raises(RuntimeError, match="no such tensor"):
        store.write(20, write)
    assert names(tmp_path) == ["000000000010"]
    assert read_steps(store.newest) == 10
    assert read_steps(store.write(20, write_state(20))) == 20


def test_links_in_a_checkpoint_are_refused(tmp_path):
    store = CheckpointStore(tmp_path, TRAINING)
    with pytest.raises(ValueError, match="plain files only"):
        store.write(10, lambda folder: (folder / "link").symlink_to(tmp_path))
    assert names(tmp_path) == []


# Every change of the file system is an event of Python's audit hooks, so a child process can be stopped before each
# of them in turn, without knowing how a checkpoint is written.
CHANGES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree")


def stopped(folder, at, how):
    """In a child: makes a checkpoint, and stops before the ``at``-th change below a folder."""
    store = CheckpointStore(folder, TRAINING)
    seen = 0

    def hook(event, arguments):
        nonlocal seen
        if event not in CHANGES or seen < 0:
            return
        if event == "os.mkdir" and os.path.exists(arguments[0]):
            return  # it changes nothing
        if event == "open" and not (isinstance(arguments[1], str) and set("wax+") & set(arguments[1])):
            return
        seen += 1
        if seen > at:
            seen = -1
            how()

    sys.addaudithook(hook)
    try:
        store.write(30, write_state(30))
    except BaseException as error:
        expected = KeyboardInterrupt if how is interrupt else OSError
        os._exit(3 if isinstance(error, expected) and says(error) else 4)
    os._exit(0)


def says(error):
    return isinstance(error, KeyboardInterrupt) or error.errno == errno.ENOSPC


def kill():
    os._exit(9)


def interrupt():
    raise KeyboardInterrupt


def fill_disk():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(("how", "exit_code"), [(kill, 9), (interrupt, 3), (fill_disk, 3)])
def test_stopped_at_any_point_the_newest_is_whole(tmp_path, how, exit_code):
    filled(tmp_path / "before", 10, 20)
    before = snapshot(tmp_path / "before")
    found = []
    for at in count():
        folder = tmp_path / f"stopped-{at}"
        shutil.copytree(tmp_path / "before", folder)
        child = multiprocessing.get_context("fork").Process(target=stopped, args=(folder, at, how))
        child.start()
        child.join()
        if exit_code == 3:
            assert not (folder / ".writing-000000000030").exists(), "it cleans up where it can"
        store = CheckpointStore(folder, TRAINING)
        found.append(read_steps(store.newest))
        assert not [name for name in names(folder) if name.startswith(".")]
        now = snapshot(folder)
        kept = (
            before if found[-1] == 20 else {k: v for k, v in before.items() if k.startswith("000000000020")}
        )
        assert now.items() >= kept.items()
        if child.exitcode == 0:
            break
        assert child.exitcode == exit_code
        assert read_steps(store.write(40, write_state(40))) == 40
    assert found == sorted(found), "once it is there, it stays"
    assert found[0] == 20
    assert found[-1] == 30
    assert found.count(20) > 5, "mkdir, two files and a folder, a manifest, the rename"
    assert found.count(30) > 3, "the oldest is removed, file by file"
    assert names(folder) == ["000000000020", "000000000030"]
