"""The graph policy's features: of the graph alone, whatever its padding, its numbering and its form."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from opgym.envs import GraphPlacementEnv, OpSchedulingEnv
from opgym.errors import InvalidProblemError

from ...envs.instances import no_edges, random_graph

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

from opgym.agents.sb3.graph_extractor import (  # noqa: E402
    STATIC_KEYS,
    PlacementExtractor,
    SchedulingExtractor,
    graph_extractor,
)
from opgym.agents.sb3.message_passing import Edges, Graphs, Round  # noqa: E402

Observation = dict[str, np.ndarray]
ENVIRONMENTS = ("placement", "scheduling")


def make(kind: str, seed: int = 0, **options: Any) -> Any:
    graph = no_edges() if seed < 0 else random_graph(seed)
    if kind == "placement":
        return GraphPlacementEnv(graph, cluster="3xP100", observation="dict", **options)
    return OpSchedulingEnv(graph, slots=5, observation="dict", **options)


def observations(env: Any, seed: int = 0) -> list[Observation]:
    """Every observation of an episode, the last one included."""
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    seen, over = [observation], False
    while not over:
        action = rng.choice(np.flatnonzero(info["action_mask"]))
        observation, _, over, _, info = env.step(action)
        seen.append(observation)
    return seen


def batch(seen: list[Observation], dtype: Any = torch.float64) -> dict[str, Any]:
    """As SB3 gives them: everything a float."""
    return {key: torch.as_tensor(np.stack([o[key] for o in seen])).to(dtype) for key in seen[0]}


def extractor(space: Any, static: Any = None, **options: Any) -> Any:
    torch.manual_seed(0)
    options = {"width": 16, **options}
    return graph_extractor(space)(space, static, **options).double()


def stepped_apart(kind: str, seeds: list[int]) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
    """Episodes on several graphs, as the native batches give them: space, what changes, static arrays."""
    sizes = [observations(make(kind, seed))[0] for seed in seeds]
    pad = (max(len(o["nodes"]) for o in sizes) + 2, max(len(o["edge_mask"]) for o in sizes) + 3)
    envs = [make(kind, seed, pad_to=pad) for seed in seeds]
    seen = [observations(env) for env in envs]
    static = {key: np.stack([s[0][key] for s in seen]) for key in STATIC_KEYS}
    for array in static.values():
        array.flags.writeable = False  # as those of the native batches are
    changing = [
        {**{k: v for k, v in o.items() if k not in STATIC_KEYS}, "graph": np.array([g], np.int32)}
        for g, s in enumerate(seen)
        for o in s
    ]
    space = {k: v for k, v in envs[0].observation_space.spaces.items() if k not in STATIC_KEYS}
    space["graph"] = spaces.Box(0, len(seeds) - 1, (1,), np.int32)
    whole = batch([o for s in seen for o in s])
    return (envs[0].observation_space, spaces.Dict(space)), (whole, batch(changing)), static  # type: ignore[return-value]


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_features_have_the_promised_length_and_differ_between_states(kind: str) -> None:
    env = make(kind)
    seen = observations(env)
    features = extractor(env.observation_space)(batch(seen))
    assert features.shape == (len(seen), extractor(env.observation_space).features_dim)
    assert torch.isfinite(features).all()
    apart = torch.cdist(features, features) + torch.eye(len(seen))
    assert apart.min() > 1e-3


@pytest.mark.parametrize("seed", [-1, 0])
@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_padding_changes_nothing_whatever_it_holds(kind: str, seed: int) -> None:
    env = make(kind, seed)
    seen = observations(env)
    nodes, edges = len(seen[0]["nodes"]), len(seen[0]["edge_mask"])
    padded_env = make(kind, seed, pad_to=(nodes + 4, edges + 6))
    padded = batch(observations(padded_env))
    expected = extractor(env.observation_space)(batch(seen))
    network = extractor(padded_env.observation_space)
    torch.testing.assert_close(network(padded), expected)
    for key in ("nodes", "figures"):
        if key in padded:
            padded[key][:, nodes:] = 7.0
    padded["edge_features"][:, -6:] = 7.0
    padded["edges"][:, :, -6:] = float(nodes + 1)
    torch.testing.assert_close(network(padded), expected)


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_the_numbering_of_nodes_and_edges_changes_nothing(kind: str) -> None:
    env = make(kind)
    seen = batch(observations(env))
    rng = np.random.default_rng(1)
    nodes, edges = seen["nodes"].shape[1], seen["edge_mask"].shape[1]
    node, edge = (torch.as_tensor(rng.permutation(n)) for n in (nodes, edges))
    new_name = torch.cat([torch.argsort(node), torch.tensor([-1])])  # the last: -1 stays -1
    other = dict(seen)
    for key in ("nodes", "node_mask", "placement", "status", "figures"):
        if key in seen:
            other[key] = seen[key][:, node]
    for key in ("edge_features", "edge_mask"):
        other[key] = seen[key][:, edge]
    other["edges"] = new_name[seen["edges"].long()][:, :, edge].double()
    for key in ("current", "slots"):
        if key in seen:
            other[key] = new_name[seen[key].long()].double()
    network = extractor(env.observation_space)
    torch.testing.assert_close(network(other), network(seen))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_both_forms_give_equal_features(kind: str) -> None:
    (whole_space, space), (whole, changing), static = stepped_apart(kind, [0, 1, 2])
    given = extractor(space, static)
    expected = extractor(whole_space)
    torch.testing.assert_close(given(changing), expected(whole))
    assert given.features_dim == expected.features_dim


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_weights_hold_no_graph_and_move_to_other_graphs(kind: str) -> None:
    (_, space), _, static = stepped_apart(kind, [0, 1])
    learned = extractor(space, static)
    assert not any("static" in name for name in learned.state_dict())
    other = make(kind, 5)
    moved = graph_extractor(other.observation_space)(other.observation_space, width=16)
    moved.load_state_dict(learned.state_dict())
    assert moved(batch(observations(other), torch.float32)).shape[1] == learned.features_dim


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_every_weight_gets_a_gradient(kind: str) -> None:
    (_, space), (_, changing), static = stepped_apart(kind, [0, 1])
    network = extractor(space, static)
    features = network(changing)
    (features * torch.randn_like(features)).sum().backward()
    for name, weight in network.named_parameters():
        assert weight.grad is not None, name
        assert torch.isfinite(weight.grad).all(), name
        assert weight.grad.abs().max() > 0, name


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_a_state_is_seen_as_far_away_as_there_are_rounds(kind: str) -> None:
    """What changes at a node reaches nodes that many edges away, in both directions, and no others."""
    graphs = Graphs(
        torch.randn(1, 7, 3, dtype=torch.float64),
        torch.ones(1, 7, dtype=torch.bool),
        torch.tensor([[[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]]]),
        torch.randn(1, 6, 2, dtype=torch.float64),
        torch.ones(1, 6, dtype=torch.bool),
    )
    edges = Edges.of(graphs, torch.zeros(1, dtype=torch.int64))
    nodes = torch.randn(7, 8, dtype=torch.float64, requires_grad=True)
    rounds = [Round(8, 2).double() for _ in range(2)]
    result = nodes
    for one_round in rounds:
        result = one_round(result, edges, graphs.edge_features[0])
    (reach,) = torch.autograd.grad(result[3].square().sum(), nodes)
    assert (reach.abs().sum(1) > 0).tolist() == [False, True, True, True, True, True, False]


def test_a_round_is_what_its_formula_says() -> None:
    """Against loops over nodes and edges, two elements of a batch on different graphs."""
    torch.manual_seed(0)
    graphs = Graphs(
        torch.randn(2, 4, 3, dtype=torch.float64),
        torch.ones(2, 4, dtype=torch.bool),
        torch.tensor([[[0, 0, 1], [1, 2, 2]], [[2, 3, 0], [0, 0, 0]]]),
        torch.randn(2, 3, 2, dtype=torch.float64),
        torch.tensor([[True, True, True], [True, True, False]]),
    )
    graph = torch.tensor([1, 0, 1])
    nodes = torch.randn(3, 4, 8, dtype=torch.float64)
    one_round = Round(8, 2).double()
    given = one_round(nodes.reshape(12, 8), Edges.of(graphs, graph), graphs.edge_features.flatten(0, 1))
    forwards, backwards = one_round.edge.weight.chunk(2)
    for element, g in enumerate(graph.tolist()):
        for node in range(4):
            from_writers, from_readers = [torch.zeros(8).double()], [torch.zeros(8).double()]
            for edge in range(3):
                writer, reader = graphs.edges[g, :, edge].tolist()
                features = graphs.edge_features[g, edge]
                if graphs.edge_mask[g, edge] and reader == node:
                    hidden = one_round.from_writer(nodes[element, writer]) + forwards @ features
                    from_writers.append(hidden.relu())
                if graphs.edge_mask[g, edge] and writer == node:
                    hidden = one_round.from_reader(nodes[element, reader]) + backwards @ features
                    from_readers.append(hidden.relu())
            means = [sum(m) / max(len(m) - 1, 1) for m in (from_writers, from_readers)]  # type: ignore[arg-type]
            heard = torch.cat([nodes[element, node], *means])
            expected = one_round.norm(nodes[element, node] + one_round.update(heard))
            torch.testing.assert_close(given.reshape(3, 4, 8)[element, node], expected)


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_memory_grows_with_edges_not_with_pairs_of_nodes(kind: str) -> None:
    """No tensor that the backward pass keeps has as many numbers as there are pairs of nodes."""
    graph = random_graph(0, ops=600)
    if kind == "placement":
        env: Any = GraphPlacementEnv(graph, groups="op", observation="dict")
    else:
        env = OpSchedulingEnv(graph, slots=5, observation="dict")
    observation, _ = env.reset()
    seen = batch([observation])
    nodes, edges = len(observation["nodes"]), int(observation["edge_mask"].sum())
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (kept.append(t.numel()), t)[1], lambda t: t):
        extractor(env.observation_space)(seen)
    assert max(kept) <= 3 * 16 * (nodes + edges) < nodes * nodes


def test_what_is_missing_or_given_twice_is_named() -> None:
    env = make("placement")
    static = {key: env.reset()[0][key][None] for key in STATIC_KEYS}
    with pytest.raises(InvalidProblemError, match="must not be given too"):
        PlacementExtractor(env.observation_space, static)
    with pytest.raises(InvalidProblemError, match="status, figures, globals, slots"):
        SchedulingExtractor(env.observation_space)
    (_, space), _, static = stepped_apart("placement", [0])
    with pytest.raises(InvalidProblemError, match="static arrays: nodes"):
        PlacementExtractor(space)
    del static["edges"]
    with pytest.raises(InvalidProblemError, match="static arrays: nodes"):
        PlacementExtractor(space, static)
    any_op = OpSchedulingEnv(random_graph(0), action="op", observation="dict")
    for wrong in (spaces.Box(0, 1, (3,)), any_op.observation_space):
        with pytest.raises(InvalidProblemError, match='action="slot"'):
            graph_extractor(wrong)
