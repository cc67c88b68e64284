"""Definitions from the library `timm`: the tables and the stand-in for torchvision; slowly, published networks."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from opgym.datasets.zoo import registry  # noqa: E402
from opgym.datasets.zoo.models.timm_library.architecture import (  # noqa: E402
    ImageClassifier,
    LibraryWorkload,
    library,
    make_deterministic,
)

PACKAGE = f"{registry.MODELS}.timm_library"
VARIANTS = registry.variants(PACKAGE)
MODELS = {variant.build.step.model: variant.build.step.image for variant in VARIANTS.values()}

#: Millions of parameters, as papers and the library's tables of results have them.
PUBLISHED = {
    "beit_base_patch16_224": 86.53,
    "caformer_s18": 26.34,
    "coat_lite_tiny": 5.72,
    "coatnet_0_rw_224": 27.44,
    "convit_tiny": 5.71,
    "crossvit_9_240": 8.55,
    "cspdarknet53": 27.64,
    "darknet53": 41.61,
    "davit_tiny": 28.36,
    "dm_nfnet_f0": 71.49,
    "edgenext_xx_small": 1.33,
    "efficientformer_l1": 12.29,
    "fbnetc_100": 5.57,
    "gernet_s": 8.17,
    "hardcorenas_a": 5.26,
    "levit_128": 9.21,
    "maxvit_tiny_tf_224": 30.92,
    "mixnet_s": 4.13,
    "mnasnet_100": 4.38,
    "mobilevit_xxs": 1.27,
    "nest_tiny": 17.06,
    "pit_ti_224": 4.85,
    "regnetx_002": 2.68,
    "regnety_008": 6.26,
    "rexnet_100": 4.80,
    "skresnet18": 11.96,
    "spnasnet_100": 4.42,
    "tinynet_a": 6.19,
    "tresnet_m": 31.39,
    "twins_svt_small": 24.06,
    "volo_d1_224": 26.63,
    "vovnet39a": 22.60,
    "xception41": 26.97,
    "xcit_nano_12_p16_224": 3.05,
}


def run(code: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    ).stdout


def test_every_row_is_well_formed():
    assert len({variant.definition.family for variant in VARIANTS.values()}) >= 60
    for name, variant in VARIANTS.items():
        build = variant.build
        assert isinstance(build, LibraryWorkload)
        assert name == build.step.name
        assert name.startswith("timm-")
        assert name.endswith(build.step.mode)
        assert variant.definition.source == "timm"
        assert variant.definition.licence == "Apache-2.0"
        assert any(str(year) in variant.definition.reference for year in range(2016, 2026)), name
        assert json.loads(json.dumps(variant.configuration)) == variant.configuration
        assert variant.configuration["batch"] == build.step.batch >= 1
        assert variant.configuration.get("optimizer") == build.optimizer
        assert (build.optimizer is not None) == (build.step.mode == "train")


def test_every_family_has_training_and_inference_or_shares_them():
    modes = {}
    for name, variant in VARIANTS.items():
        modes.setdefault(variant.definition.family, []).append(name.rpartition("-")[2])
    for family, offered in modes.items():
        assert set(offered) == {"train", "infer"}, family
        assert len(offered) <= 4, family


def test_names_do_not_collide_with_other_definitions():
    assert VARIANTS.keys() <= registry.variants().keys()  # which refuses to offer a name twice


def test_walking_the_definitions_imports_neither_the_library_nor_the_stand_in():
    run(
        "import sys\n"
        "from opgym.datasets.zoo import registry\n"
        f"assert registry.variants({PACKAGE!r})\n"
        "assert 'timm' not in sys.modules and 'torchvision' not in sys.modules\n"
    )


def test_the_stand_in_has_the_names_that_are_imported_and_refuses_to_be_used():
    run(
        "import importlib.util, sys\n"
        "from opgym.datasets.zoo.models.torchvision_stub import install_torchvision_stub\n"
        "install_torchvision_stub()\n"
        "import torchvision.transforms as transforms\n"
        "import torchvision.transforms.v2.functional\n"
        "from torchvision.ops.misc import FrozenBatchNorm2d\n"
        "from torchvision.transforms.functional import InterpolationMode\n"
        "assert importlib.util.find_spec('torchvision') is not None\n"
        "assert InterpolationMode.BICUBIC.value == 'bicubic'\n"
        "assert not isinstance(3, FrozenBatchNorm2d)\n"
        "assert issubclass(type('Mine', (transforms.ToTensor,), {}), transforms.ToTensor)\n"
        "try:\n"
        "    transforms.Resize(224)\n"
        "except RuntimeError as error:\n"
        "    assert 'Resize' in str(error)\n"
        "else:\n"
        "    raise SystemExit('a stand-in was used')\n"
    )


def test_a_torchvision_that_is_loaded_already_stays():
    run(
        "import sys, types\n"
        "from opgym.datasets.zoo.models.torchvision_stub import install_torchvision_stub\n"
        "sys.modules['torchvision'] = mine = types.ModuleType('torchvision')\n"
        "install_torchvision_stub()\n"
        "assert sys.modules['torchvision'] is mine and 'torchvision.ops' not in sys.modules\n"
    )


def test_a_missing_library_says_what_to_install(monkeypatch):
    from opgym.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "timm", None)
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        monkeypatch.delitem(sys.modules, name)
    before = set(sys.modules)
    try:
        with pytest.raises(MissingExtraError, match=r"opgym\[zoo\]"):
            VARIANTS["timm-pit-ti-224-infer"].build()
    finally:
        for name in set(sys.modules) - before:
            if name.partition(".")[0] == "torchvision":
                del sys.modules[name]


def test_dropout_and_stochastic_depth_are_turned_off():
    class DropPath(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop_prob = 0.5

    network = torch.nn.Sequential(torch.nn.Dropout(0.3), torch.nn.Dropout2d(0.2), DropPath())
    make_deterministic(network)
    assert [network[0].p, network[1].p, network[2].drop_prob] == [0, 0, 0]


@pytest.fixture
def timm():
    pytest.importorskip("huggingface_hub", reason="timm comes with the extra zoo")
    pytest.importorskip("safetensors", reason="timm comes with the extra zoo")
    from opgym.errors import MissingExtraError

    try:
        return library()
    except MissingExtraError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_images_have_the_published_size(timm):
    for model, image in MODELS.items():
        settings = timm.models.get_pretrained_cfg(model)
        assert settings is not None, model
        assert settings.input_size == (3, image, image), model


@pytest.mark.slow
@pytest.mark.parametrize("model", PUBLISHED)
def test_parameters_are_as_published(timm, model):
    assert model in MODELS
    with torch.device("meta"):
        count = sum(parameter.numel() for parameter in ImageClassifier(model).parameters())
    assert count / 1e6 == pytest.approx(PUBLISHED[model], abs=0.0051)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["timm-regnetx-002-train", "timm-pit-ti-224-infer"])
def test_a_graph_holds_the_parameters_that_the_library_counts(timm, name):
    variant = VARIANTS[name]
    imported = variant.build()
    graph = imported.graph
    with torch.device("meta"):
        network = timm.create_model(variant.build.step.model)
    held = list(network.parameters())
    if name.endswith("-train"):  # batch normalisation updates its statistics and counts its steps
        held += network.buffers()
    expected = sum(tensor.numel() * tensor.element_size() for tensor in held)
    assert not imported.report.missing_cost
    assert graph.num_ops >= 100
    if name.endswith("-train"):
        homes = [op for op in range(graph.num_ops) if graph.is_variable[op]]
        stored = sum(int(graph.tensor_bytes[list(graph.outputs(op))].sum()) for op in homes)
        assert stored == expected
        assert {int(graph.op_update_of[op]) for op in range(graph.num_ops)} - {-1} == set(homes)
    else:
        parameters = graph.tensor_role == graph_role("parameter")
        assert int(graph.tensor_bytes[parameters].sum()) == expected


def graph_role(name: str) -> int:
    from opgym.graphs.graph import ROLES

    return ROLES.index(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["timm-levit-128-train", "timm-convit-tiny-infer"])
def test_bytes_do_not_depend_on_the_process(timm, name):
    code = (
        "import hashlib\n"
        "from opgym.datasets.zoo import registry\n"
        "from opgym.graphs.storage import to_bytes\n"
        f"build = registry.variants({PACKAGE!r})[{name!r}].build\n"
        "print(hashlib.sha256(to_bytes(build().graph)).hexdigest())\n"
    )
    assert len({run(code, PYTHONHASHSEED=seed) for seed in ("1", "2")}) == 1
