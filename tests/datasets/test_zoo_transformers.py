"""Definitions from the library `transformers`: the tables; slowly, networks of published sizes and their graphs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from opgym.datasets.zoo import registry  # noqa: E402
from opgym.datasets.zoo.models.transformers_library.architecture import (  # noqa: E402
    Architecture,
    LibraryWorkload,
    flat,
    merged,
)
from opgym.datasets.zoo.models.transformers_library.rows import depths  # noqa: E402
from opgym.datasets.zoo.models.workload import ids  # noqa: E402
from opgym.datasets.zoo.sources import source_digest  # noqa: E402

PACKAGE = f"{registry.MODELS}.transformers_library"
VARIANTS = registry.variants(PACKAGE)

#: Parameters of public checkpoints, by a graph whose configuration is theirs.
PUBLISHED = {
    "wav2vec2-12l-train": 94_396_320 - 768,  # wav2vec2-base-960h without the vector that hides what is masked
    "whisper-tiny-train": 37_760_640,
    "whisper-base-infer": 72_593_920,
    "whisper-small-train": 241_734_912,
}


def test_every_row_is_well_formed():
    assert len({v.definition.family for v in VARIANTS.values()}) >= 90
    for name, variant in VARIANTS.items():
        build = variant.build
        assert isinstance(build, LibraryWorkload)
        assert name == build.name
        assert name.startswith(variant.definition.family)
        assert name.endswith(build.mode)
        assert variant.definition.source == "transformers"
        assert variant.definition.licence == "Apache-2.0"
        assert any(mark in variant.definition.reference for mark in ("19", "20"))
        assert json.loads(json.dumps(dict(variant.configuration))) == variant.configuration
        assert variant.configuration["batch"] >= 1
        assert ("optimizer" in variant.configuration) == (build.mode == "train")


def test_names_do_not_collide_with_other_definitions():
    assert VARIANTS.keys() <= registry.variants().keys()  # which refuses to offer a name twice


def test_walking_the_definitions_does_not_import_the_library():
    code = (
        "import sys\n"
        "from opgym.datasets.zoo import registry\n"
        f"assert registry.variants({PACKAGE!r})\n"
        "sys.exit('transformers' in sys.modules or 'torchvision' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_digest_covers_the_library_and_the_table(monkeypatch):
    variant = VARIANTS["wav2vec2-4l-train"]
    before = source_digest(variant.definition)
    monkeypatch.setattr("opgym.datasets.zoo.sources._version", lambda package: f"{package} of another day")
    assert source_digest(variant.definition) != before


def test_settings_merge_and_flatten():
    settings = merged({"a": 1, "inner": {"x": 1, "y": (2, 3)}}, {"inner": {"x": 5}, "b": None})
    assert settings == {"a": 1, "b": None, "inner": {"x": 5, "y": (2, 3)}}
    assert flat(settings) == {"a": 1, "b": None, "inner.x": 5, "inner.y": [2, 3]}


def test_depths_set_every_named_setting():
    sizes = depths("layers", "text.layers", "text.blocks", train=(2,), infer=(6,))
    assert [(size.label, size.mode) for size in sizes] == [("2l", "train"), ("6l", "infer")]
    assert sizes[1].settings == {"layers": 6, "text": {"layers": 6, "blocks": 6}}


def test_a_missing_library_says_what_to_install(monkeypatch):
    from opgym.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "transformers", None)
    row = Architecture("x", "X", "Paper 2020.", {"input_ids": ids(10, 1, 4)}, depths("layers", infer=(1,)))
    (_, build, _), *_ = row.workloads()
    with pytest.raises(MissingExtraError, match=r"opgym\[zoo\]"):
        build()


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes(name):
    pytest.importorskip("transformers")
    network = VARIANTS[name].build.network()
    assert sum(p.numel() for p in network.parameters()) == PUBLISHED[name]
    assert network.num_parameters() == PUBLISHED[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["whisper-tiny-train", "esm-6l-train"])
def test_a_step_holds_the_parameters_that_the_library_counts_and_updates_them(name):
    pytest.importorskip("transformers")
    variant = VARIANTS[name]
    network = variant.build.network()
    trained = network.num_parameters(only_trainable=True)
    imported = variant.build()
    graph = imported.graph
    assert not imported.report.missing_cost
    updates = [op for op in range(graph.num_ops) if graph.op_update_of[op] >= 0]
    written = sum(int(graph.tensor_bytes[list(graph.outputs(op))].sum()) for op in updates) // 4
    unread = [note for note in imported.report.notes if "are not read" in note or "get no gradient" in note]
    assert (written == trained) or unread
    for op in updates:
        home = int(graph.op_update_of[op])
        assert graph.is_variable[home]
        assert graph.op_group[op] == graph.op_group[home] >= 0


@pytest.mark.slow
def test_building_does_not_depend_on_the_process():
    pytest.importorskip("transformers")
    code = (
        "import hashlib, sys\n"
        "from opgym.datasets.zoo import registry\n"
        "from opgym.graphs.storage import to_bytes\n"
        f"variants = registry.variants({PACKAGE!r})\n"
        "print(hashlib.sha256(to_bytes(variants['esm-6l-train'].build().graph)).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
