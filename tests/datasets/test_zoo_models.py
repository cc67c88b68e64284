"""Definitions of the zoo's networks: shapes without a device, published sizes, small networks run for real."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")

from opgym.datasets.zoo import registry  # noqa: E402
from opgym.datasets.zoo.models import random_wiring, state_space, structured, transformer_xl, wavenet  # noqa: E402
from opgym.datasets.zoo.models.attention import Attention, causal_bias  # noqa: E402
from opgym.datasets.zoo.models.compact import shuffled  # noqa: E402
from opgym.datasets.zoo.models.efficient_attention import Local, Retention, SequenceModel  # noqa: E402
from opgym.datasets.zoo.models.gnmt import GNMT  # noqa: E402
from opgym.datasets.zoo.models.graph_networks import summed  # noqa: E402
from opgym.datasets.zoo.models.large_language import Experts  # noqa: E402
from opgym.datasets.zoo.models.layers import GRUCell, LSTMCell  # noqa: E402
from opgym.datasets.zoo.models.recurrent import LayeredModel, SimpleRecurrentLayer, Tagger  # noqa: E402
from opgym.datasets.zoo.models.rnnlm import LSTMLanguageModel  # noqa: E402
from opgym.datasets.zoo.models.vision_transformers import WindowAttention  # noqa: E402
from opgym.datasets.zoo.models.workload import Workload  # noqa: E402

VARIANTS = {name: v for name, v in registry.variants().items() if isinstance(v.build, Workload)}
FAMILIES = {variant.definition.family for variant in VARIANTS.values()}
GDP = {
    *(f"rnnlm-{layers}l-train" for layers in (2, 4, 8)),
    *(f"gnmt-{layers}l-train" for layers in (2, 4, 8)),
    *(f"transformer-xl-{layers}l-train" for layers in (2, 4, 8)),
    "inception-v3-b32-train",
    "inception-v3-b64-train",
    "amoebanet-a-train",
    "wavenet-2x18-train",
    "wavenet-4x36-train",
}


def smallest() -> list[str]:
    """One training graph of each family: the first of its definition, which puts small ones there."""
    first: dict[str, str] = {"gnmt": "gnmt-2l-train"}
    for variant in VARIANTS.values():
        if not variant.definition.workload and variant.definition.family not in first:
            names = [other.name for other in variant.definition.variants()]
            first[variant.definition.family] = next(name for name in names if name.endswith("-train"))
    return sorted(first.values())


def network_of(build: Workload) -> torch.nn.Module:
    with torch.device("meta"):
        network = build.network()
    return network.train(build.optimizer is not None)


def seeded(network: torch.nn.Module) -> torch.nn.Module:
    """Small random parameters, so that nothing is zero by initialisation."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return network


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def words(below: int, *shape: int) -> torch.Tensor:
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(0))


def test_breadth_and_the_workloads_of_gdp():
    assert len(FAMILIES) >= 90
    assert {name for name, variant in VARIANTS.items() if variant.definition.workload} == GDP


def test_every_graph_says_where_it_is_from_and_how_it_is_made():
    for name, variant in VARIANTS.items():
        assert variant.definition.source == "own"
        assert variant.definition.licence == "Apache-2.0"
        assert name == variant.build.name
        assert any(year in variant.definition.reference for year in map(str, range(2012, 2025))), name
        assert json.loads(json.dumps(variant.configuration)) == dict(variant.configuration)
        assert variant.configuration["batch"] >= 1
        assert ("optimizer" in variant.configuration) == name.endswith("-train")


def test_no_family_has_more_graphs_than_the_zoo_takes():
    for family in FAMILIES:
        offered = [
            v for v in VARIANTS.values() if v.definition.family == family and not v.definition.workload
        ]
        assert len(offered) <= 10, family


#: Families whose smallest graph takes more than half a second even without computing anything.
LONG = {
    "albert", "amoebanet", "bilstm-crf", "bytenet", "cait", "conformer", "convmixer", "cyclegan", "darts",
    "ddpm", "deep-speech-2", "deeplab-v3-plus", "densenet", "detr", "dpn", "dreamer", "efficientdet",
    "efficientnet", "enas", "evoformer", "ghostnet", "glow", "gmlp", "gnmt", "googlenet", "gpt2", "gru-lm",
    "hourglass", "hrnet", "inception-resnet-v2", "inception-v3", "inception-v4", "las", "longformer",
    "mamba", "mobilenet-v2", "mobilenet-v3", "muzero", "nasnet", "neural-ode", "ntm", "perceiver-io",
    "pnasnet", "pspnet", "quartznet", "raft", "randwire", "rcan", "realnvp", "repvgg", "res2net", "resnest",
    "resnet-v2", "retinanet", "rhn", "rnnlm", "rwkv", "se-resnet", "seq2seq-attention", "sru", "stylegan2",
    "swiftnet-like", "swin", "tacotron-2", "tiramisu", "tree-lstm", "unet-plus-plus",
    "universal-transformer", "vdvae", "vit", "xception", "yolo-v3",
}  # fmt: skip


def quick_first() -> list[object]:
    """The names, those of long families marked slow."""
    return [
        pytest.param(name, marks=pytest.mark.slow) if VARIANTS[name].definition.family in LONG else name
        for name in smallest()
    ]


@pytest.mark.parametrize("name", quick_first())
def test_loss_is_one_number_and_reaches_every_parameter(name):
    build = VARIANTS[name].build
    network = network_of(build)
    result = network(*(argument.placeholder("meta") for argument in build.arguments))
    assert result.shape == () or build.targets == ()
    result.mean().backward()
    learned = {n: parameter for n, parameter in network.named_parameters() if parameter.requires_grad}
    assert [n for n, parameter in learned.items() if parameter.grad is None] == []


#: Parameters in thousands, as the papers or their authors' published models have them.
PUBLISHED = {
    "alexnet-train": 61_101,
    "albert-base-infer": 11_222,
    "amoebanet-a-train": 86_700,
    "bert-base-infer": 109_514,
    "bert-large-infer": 335_174,
    "cait-xxs-24-infer": 11_956,
    "clip-12-infer": 151_277,
    "convnext-tiny-infer": 28_589,
    "darts-v2-cifar-infer": 3_349,
    "ddpm-32-infer": 35_746,
    "darts-v2-imagenet-infer": 4_719,
    "densenet-121-infer": 7_979,
    "densenet-201-infer": 20_014,
    "dla-34-infer": 15_742,
    "dpn-92-infer": 37_669,
    "efficientnet-b0-infer": 5_289,
    "edsr-32-infer": 43_090,
    "efficientnet-b7-infer": 66_348,
    "ghostnet-infer": 5_183,
    "gmlp-30-infer": 19_423,
    "gpt2-medium-infer": 354_823,
    "gpt2-small-infer": 124_440,
    "inception-resnet-v2-10-20-10-infer": 55_843,
    "inception-v3-b32-train": 27_161,
    "inception-v3-plain-infer": 23_835,
    "inception-v4-4-7-3-infer": 42_680,
    "llama-32l-infer": 6_738_416,
    "mlp-mixer-base-infer": 59_880,
    "mobilenet-v1-infer": 4_232,
    "mobilenet-v2-infer": 3_505,
    "mobilenet-v3-large-infer": 5_483,
    "mobilenet-v3-small-infer": 2_543,
    "nasnet-a-large-infer": 88_753,
    "nasnet-a-mobile-infer": 5_290,
    "pnasnet-5-large-infer": 86_058,
    "poolformer-s12-infer": 11_915,
    "randwire-ws-4-0.75-infer": 5_600,
    "rcan-10x20-infer": 15_592,
    "repvgg-a0-infer": 9_109,
    "res2net-50-infer": 25_699,
    "resmlp-12-infer": 15_351,
    "resnest-50-infer": 27_483,
    "resnet-18-infer": 11_690,
    "resnet-50-infer": 25_557,
    "resnet-152-infer": 60_193,
    "resnext-101-32x4d-infer": 44_178,
    "se-resnet-50-infer": 28_088,
    "segformer-b0-infer": 3_753,
    "segformer-b2-infer": 27_463,
    "shufflenet-v2-1x-infer": 2_279,
    "squeezenet-train": 1_248.4,
    "swin-tiny-infer": 28_288,
    "t5-small-infer": 60_507,
    "vgg-16-train": 138_358,
    "vit-base-infer": 86_568,
    "vit-large-infer": 304_327,
    "xception-8-infer": 22_856,
}


@pytest.mark.parametrize(("name", "thousands"), PUBLISHED.items())
def test_parameters_are_as_published(name, thousands):
    with torch.device("meta"):
        network = VARIANTS[name].build.network()
    # Searched cells: the published programs round channels and place projections a little differently.
    loose = name.startswith(("amoebanet", "nasnet", "pnasnet", "randwire"))
    count = sum(parameter.numel() for parameter in network.parameters())
    assert count / 1000 == pytest.approx(thousands, rel=0.01 if loose else 2e-4)


def test_lstm_and_gru_cells_equal_torch_s():
    features, hidden, memory = noise(3, 5), noise(3, 4, seed=1), noise(3, 4, seed=2)
    cell, reference = seeded(LSTMCell(5, 4)), torch.nn.LSTMCell(5, 4)
    with torch.no_grad():
        reference.weight_ih.copy_(cell.gates.weight[:, :5])
        reference.weight_hh.copy_(cell.gates.weight[:, 5:])
        reference.bias_ih.copy_(cell.gates.bias)
        reference.bias_hh.zero_()
    torch.testing.assert_close(cell(features, (hidden, memory)), reference(features, (hidden, memory)))

    apart = LSTMCell(5, 4, separate=True)
    with torch.no_grad():
        for index in range(4):
            rows = slice(4 * index, 4 * index + 4)
            apart.from_input[index].weight.copy_(cell.gates.weight[rows, :5])
            apart.from_input[index].bias.copy_(cell.gates.bias[rows])
            apart.from_state[index].weight.copy_(cell.gates.weight[rows, 5:])
    torch.testing.assert_close(apart(features, (hidden, memory)), cell(features, (hidden, memory)))

    gated, gru = seeded(GRUCell(5, 4)), torch.nn.GRUCell(5, 4)
    with torch.no_grad():
        gru.weight_ih.copy_(gated.from_input.weight)
        gru.weight_hh.copy_(gated.from_state.weight)
        gru.bias_ih.copy_(gated.from_input.bias)
        gru.bias_hh.copy_(gated.from_state.bias)
    torch.testing.assert_close(gated(features, hidden), gru(features, hidden))


def test_fused_attention_equals_its_parts():
    plain, fused = seeded(Attention(8, 2)), seeded(Attention(8, 2, fused=True))
    features = noise(2, 5, 8)
    bias = causal_bias(5, features)
    torch.testing.assert_close(plain(features, bias=bias), fused(features, bias=bias))


def test_relative_shift_moves_each_row():
    scores = noise(2, 3, 4, 8)
    moved = transformer_xl.shift(scores)
    for row in range(4):
        left = 3 - row
        torch.testing.assert_close(moved[:, :, row, : 8 - left], scores[:, :, row, left:])


@pytest.mark.parametrize(
    ("network", "length"),
    [
        (LSTMLanguageModel(2, 6, 11), 6),
        (LayeredModel(state_space.RWKVLayer, 2, 6, 11), 6),
        (LayeredModel(state_space.SelectiveStateSpace, 1, 16, 11), 6),
        (LayeredModel(SimpleRecurrentLayer, 2, 6, 11), 6),
        (SequenceModel(Retention, 2, 8, 2, 6, 11), 6),
        (wavenet.TemporalConvolutionalNetwork(2, 6, 11), 6),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, torch.nn.Module) else "",
)
def test_language_models_do_not_see_later_words(network, length):
    seeded(network)
    text = words(11, 2, length)
    other = text.clone()
    other[:, 4:] = (other[:, 4:] + 1) % 11
    with torch.no_grad():
        before, after = network(text), network(other)
    assert before.shape == (2, length, 11)
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


def test_transformer_xl_reads_its_memory_across_segments():
    network = seeded(transformer_xl.TransformerXL(2, 8, 2, 16, 11, 3))
    text, memories = words(11, 2, 6), noise(2, 2, 3, 8)
    other = text.clone()
    other[:, 1] = (other[:, 1] + 1) % 11
    with torch.no_grad():
        before, after = network(text, memories), network(other, memories)
        elsewhere = network(text, memories + noise(2, 2, 3, 8, seed=1))
    assert before.shape == (2, 6, 11)
    torch.testing.assert_close(before[:, 0], after[:, 0])
    assert not torch.allclose(before[:, 3:], after[:, 3:])  # the next segment sees the change
    assert not torch.allclose(before[:, 0], elsewhere[:, 0])


def test_gnmt_translates_with_both_kinds_of_cells():
    for separate in (False, True):
        network = seeded(GNMT(3, 6, 11, separate=separate))
        source, shifted, targets = words(11, 2, 4), words(11, 2, 5), words(11, 2, 5)
        logits = network(source, shifted)
        assert logits.shape == (2, 5, 11)
        expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        torch.testing.assert_close(network(source, shifted, targets), expected)


def test_wavenet_is_causal_and_sees_its_receptive_field():
    network = seeded(wavenet.WaveNet(1, 3, 4, 4, levels=5))
    samples = noise(1, 1, 20)
    other = samples.clone()
    other[..., 10] += 1
    with torch.no_grad():
        changed = (network(samples) != network(other)).any(1)[0].nonzero().flatten().tolist()
    # The first convolution and dilations 1, 2 and 4 reach 1 + 1 + 2 + 4 samples ahead.
    assert changed == list(range(10, 19))


def test_random_wirings():
    ring = random_wiring.watts_strogatz(12, 4, 0.0, seed=0)
    assert ring[5] == [3, 4]
    assert ring[11] == [0, 1, 9, 10]
    for seed in range(3):
        rewired = random_wiring.watts_strogatz(32, 4, 0.75, seed)
        assert sum(map(len, rewired)) == 64
        assert rewired != random_wiring.watts_strogatz(32, 4, 0.0, seed)
        attached = random_wiring.barabasi_albert(32, 5, seed)
        assert [len(reads) for reads in attached] == [0] * 5 + [5] * 27
        drawn = random_wiring.erdos_renyi(32, 0.2, seed)
        assert 60 <= sum(map(len, drawn)) <= 140
        for wiring in (rewired, attached, drawn):
            assert all(0 <= source < node for node, reads in enumerate(wiring) for source in reads)
    assert random_wiring.erdos_renyi(32, 0.2, 7) == random_wiring.erdos_renyi(32, 0.2, 7)


def test_random_trees_use_every_subtree_once():
    for leaves in (2, 7, 40):
        tree = structured.random_tree(leaves, seed=0)
        children = [child for join in tree for child in join]
        assert sorted(children) == list(range(2 * leaves - 2))
        assert all(max(join) < leaves + index for index, join in enumerate(tree))


def test_windows_are_cut_and_masked_as_in_swin():
    attention = WindowAttention(4, 2, 14, shifted=True)
    grid = torch.arange(14 * 14, dtype=torch.float32).reshape(1, 14, 14, 1)
    windows = attention.windows(grid)
    assert windows.shape == (4, 49, 1)
    assert windows[1, :, 0].tolist() == grid[0, :7, 7:, 0].flatten().tolist()
    mask = attention.mask()
    assert mask.shape == (4, 49, 49)
    assert (mask[0] == 0).all()
    # The last window holds four regions of 4 x 4, 4 x 3, 3 x 4 and 3 x 3 places.
    assert int((mask[3] == 0).sum()) == 16**2 + 12**2 + 12**2 + 9**2


def test_experts_equal_the_weighted_sum_where_no_slot_is_short():
    experts = seeded(Experts(6, 8, 4, 2, capacity=4.0))
    features = noise(2, 5, 6)
    with torch.no_grad():
        weights, choices = torch.topk(torch.softmax(experts.router(features), 2), 2, 2)
        answers = torch.stack([expert(features) for expert in experts.experts], 2)
        chosen = answers.gather(2, choices.unsqueeze(3).expand(-1, -1, -1, 6))
        torch.testing.assert_close(experts(features), (weights.unsqueeze(3) * chosen).sum(2))


def test_local_attention_equals_masked_attention():
    local, full = seeded(Local(8, 2, 256)), seeded(Attention(8, 2))
    block = torch.arange(256) // 64
    seen = ((block[:, None] - block[None, :]).abs() <= 1) | (block[None, :] == 0)
    features = noise(1, 256, 8)
    torch.testing.assert_close(local(features), full(features, bias=(~seen).float() * -1e9))


def test_retention_equals_its_recurrence():
    retention = seeded(Retention(4, 1, 5))
    query, key, value = (noise(1, 1, 5, 4, seed=seed) for seed in range(3))
    decay = 1 - 2.0**-5
    state, rows = torch.zeros(4, 4), []
    for step in range(5):
        state = decay * state + torch.outer(key[0, 0, step], value[0, 0, step])
        rows.append(query[0, 0, step] @ state * 0.5)
    torch.testing.assert_close(retention.mix(query, key, value)[0, 0], retention.norm(torch.stack(rows)))


def test_conditional_random_field_equals_enumeration():
    tagger = seeded(Tagger(1, 4, 7, 3))
    text, tags = words(7, 2, 4), words(3, 2, 4)
    with torch.no_grad():
        emissions = tagger.emissions(text)
        paths = torch.cartesian_prod(*[torch.arange(3)] * 4)
        moves = tagger.transition[paths[:, :-1], paths[:, 1:]].sum(1)
        scores = emissions[:, torch.arange(4), paths].sum(2) + moves
        own = (paths[None] == tags[:, None]).all(2).nonzero()[:, 1]
        expected = (torch.logsumexp(scores, 1) - scores[torch.arange(2), own]).mean()
        torch.testing.assert_close(tagger(text, tags), expected)
        torch.testing.assert_close(tagger(text).max(1).values, scores.max(1).values)


def test_sums_over_neighbours_and_shuffled_channels():
    messages, receivers = noise(6, 2), torch.tensor([0, 2, 2, 0, 3, 2])
    expected = torch.stack([messages[receivers == node].sum(0) for node in range(4)])
    torch.testing.assert_close(summed(messages, receivers, 4), expected)
    channels = torch.arange(6.0).reshape(1, 6, 1, 1)
    assert shuffled(channels, 2).flatten().tolist() == [0, 3, 1, 4, 2, 5]
