"""What ``opgym reproduce regal`` reports of stored values: gains over the base, and what they are worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....datasets.suites import POPULATIONS
from ....statistics import Interval, clustered_mean, clustered_ratio
from .methods import AGENT, BASELINE

Floats = NDArray[np.float64]
#: Bootstrap samples of each of the many intervals of an agent beside every other column.
_FEW_SAMPLES = 2_000

#: What the paper says of itself (arXiv 1905.02494, abstract of version 1), and nothing that it does not say there: of
#: peak memory, at equal evaluations, on TensorFlow graphs that nobody else has. (3.74 % on graphs of an XLA benchmark.)
PAPER: Mapping[str, float] = MappingProxyType(
    {"improvement": 0.0356, "headroom_captured": 0.54, "times_next_best": 4.4}
)
#: What they are said of: evaluations of BRKGA.
PAPER_EVALUATIONS = 5_000
#: Where ours is not theirs.
DEVIATIONS = (
    "graphs: the paper's 372 TensorFlow graphs are private; ours are random ones, and real ones apart",
    "costs: our simulator and roofline instead of the paper's performance model",
    "settings of BRKGA that the paper leaves open are ours, untuned; tuned on training graphs in `brkga-tuned-5k`",
    "seeded BRKGA, annealing, XLA's best of three and BRKGA with 50,000 evaluations are not in the paper",
    "CP-SAT has a limit in deterministic time, starts from one order or placement, and runs on the first rows alone",
    "IDRS has twenty times REGAL's evaluations (one seed), and five short runs within the same evaluations",
    "local search starts from the greedy order, on two devices from the best heuristic",
    "running time is with little memory; without such a limit nothing is to be gained",
    "the paper's figures are for peak memory; they stand beside ours on one device and on two",
)


def lines_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Everything that is reported of a task.

    Args:
        document: What ``regal.run`` returns of it.

    Returns:
        ``{task, method, metric, value, low, high, n, paper}``, the task with its population. Metrics are

        - ``headroom``: mean of 1 - best known / base, of the base alone;
        - ``improvement``: mean of 1 - value / base, seed by seed, over the runs where both fit into memory;
        - ``headroom_captured``: sum of improvements over sum of headroom, over the same runs;
        - ``wins``, ``ties``, ``losses``: runs against the base with the same seed, what fits beating what does not;
        - ``feasible``: share of runs that find something that fits;
        - ``seconds`` and ``evaluations`` of a run, means over graphs;
        - of learned agents ``improvement_over:COLUMN`` for every other column, and ``times_next_best``: improvement
          over that of the best of the paper's baselines (and GAS) at the same budget, where both improve;
        - of an agent that was trained several times ``improvement_of_trainings``: median, least and most.

        ``low`` and ``high`` are 95 % intervals of a bootstrap that draws graphs, or families with their twins of real
        ones; ``None`` where there are few. ``n`` counts runs, or graphs of means over them. ``paper`` is what it says.
    """
    found = []
    for population in POPULATIONS:
        table = Table.of(document, population)
        if table is not None:
            found += list(table.lines())
    return found


@dataclass(frozen=True)
class Table:
    """Values of one task and population.

    Attributes:
        task: Name of the task, with the population.
        methods: Their documents, by name, the base first.
        values: Of each column ``[graphs, seeds]``; infinite where nothing fits, NaN where it did not run.
        best_known: Of each graph; NaN where nothing is known.
        twins: What each graph must not be counted apart from.
        columns: Of each column, what is stored of each graph.
    """

    task: str
    methods: Mapping[str, Mapping[str, Any]]
    values: Mapping[str, Floats]
    best_known: Floats
    twins: NDArray[np.str_]
    columns: Mapping[str, Sequence[Mapping[str, Any]]]

    @classmethod
    def of(cls, document: Mapping[str, Any], population: str) -> Table | None:
        """That of a population; ``None`` without graphs of it."""
        graphs = [graph for graph in document["graphs"] if graph["population"] == population]
        if not graphs:
            return None
        methods = {method["name"]: method for method in document["methods"]}
        seeds = len(document["seeds"])
        values, columns = {}, {}
        for name in methods:
            values[name] = np.array(
                [_by_seed(graph["columns"].get(name), methods[name], seeds) for graph in graphs]
            )
            columns[name] = [graph["columns"][name] for graph in graphs if name in graph["columns"]]
        best = [math.nan if graph["best_known"] is None else graph["best_known"] for graph in graphs]
        twins = np.array([graph["twins"] for graph in graphs])
        return cls(f"{document['task']}/{population}", methods, values, np.array(best, float), twins, columns)

    @property
    def base(self) -> str:
        """The column that all others are compared with."""
        return next(iter(self.methods))

    def lines(self) -> Iterator[dict[str, Any]]:
        """Everything that is reported of it."""
        shown = [name for name in self.methods if self.columns[name]]
        for name in shown:
            yield from self._plain(name)
        for name in shown:
            if self.methods[name]["kind"] != BASELINE:
                yield from self._beside(name, shown)
        yield from self._trainings(shown)

    # --- one column

    def _plain(self, name: str) -> Iterator[dict[str, Any]]:
        if name == self.base:
            both = self._both(self.base, self.base)
            known = both & ~np.isnan(self.best_known)[:, None]
            room = 1 - self.best_known[:, None] / self._finite(self.base)
            yield from self._line(
                name, "headroom", self._interval(clustered_mean, known, room), int(known.sum())
            )
        else:
            both = self._both(name, self.base)
            gain = self.gain(name, self.base)
            yield from self._line(
                name, "improvement", self._interval(clustered_mean, both, gain), int(both.sum())
            )
            known = both & ~np.isnan(self.best_known)[:, None]
            room = 1 - self.best_known[:, None] / self._finite(self.base)
            share = self._interval(clustered_ratio, known, gain, room)
            yield from self._line(name, "headroom_captured", share, int(known.sum()))
            yield from self._ranks(name)
        ran = ~np.isnan(self.values[name])
        fits = np.isfinite(self.values[name]).astype(float)
        yield from self._line(name, "feasible", self._interval(clustered_mean, ran, fits), int(ran.sum()))
        for metric in ("seconds", "evaluations"):
            mean = float(np.mean([column[metric] for column in self.columns[name]]))
            yield self._row(name, metric, mean, None, None, len(self.columns[name]))

    def _ranks(self, name: str) -> Iterator[dict[str, Any]]:
        ours, base = self.values[name], self.values[self.base]
        ran = ~(np.isnan(ours) | np.isnan(base))
        counts = {"wins": ours < base, "ties": ours == base, "losses": ours > base}
        for metric, hit in counts.items():
            yield self._row(name, metric, int((hit & ran).sum()), None, None, int(ran.sum()))

    # --- a learned agent beside the others

    def _beside(self, name: str, shown: Sequence[str]) -> Iterator[dict[str, Any]]:
        for other in shown:
            if other in (name, self.base):
                continue
            both = self._both(name, other)
            found = self._interval(self._roughly, both, self.gain(name, other))
            yield from self._line(name, f"improvement_over:{other}", found, int(both.sum()))
        rivals = [
            self._improvement(other)
            for other in shown
            if other not in (name, self.base)
            and (
                (self.methods[other]["published"] and not self.methods[other]["long"])
                or (self.methods[other]["solver"] == "gas" and self.methods[other]["kind"] == AGENT)
            )
        ]
        best = max((value for value in rivals if value is not None), default=None)
        own = self._improvement(name)
        if best is not None and best > 0 and own is not None and own > 0:
            yield self._row(name, "times_next_best", own / best, None, None, len(rivals))

    def _trainings(self, shown: Sequence[str]) -> Iterator[dict[str, Any]]:
        groups: dict[str, dict[str, float]] = {}
        for name in shown:
            method, own = self.methods[name], self._improvement(name)
            if (
                method["training_of"] and own is not None
            ):  # the default may be one of those with a seed in its name
                groups.setdefault(method["training_of"], {}).setdefault(method["training"], own)
        for agent, found in groups.items():
            if len(found) > 1:
                values = list(found.values())
                yield self._row(
                    f"{agent} ({len(values)} trainings)", "improvement_of_trainings", median(values), min(values),
                    max(values), len(values),
                )  # fmt: skip

    # --- arithmetic

    def gain(self, name: str, base: str) -> Floats:
        """1 - value / base, ``[graphs, seeds]``; NaN where one of them has no value."""
        gain: Floats = 1 - self._finite(name) / self._finite(base)
        return gain

    def _finite(self, name: str) -> Floats:
        return np.where(np.isfinite(self.values[name]), self.values[name], np.nan)

    def _both(self, name: str, other: str) -> NDArray[np.bool_]:
        both: NDArray[np.bool_] = np.isfinite(self.values[name]) & np.isfinite(self.values[other])
        return both

    def _improvement(self, name: str) -> float | None:
        both = self._both(name, self.base)
        return float(self.gain(name, self.base)[both].mean()) if both.any() else None

    def _interval(
        self, statistic: Callable[..., Interval], chosen: NDArray[np.bool_], *values: Floats
    ) -> dict[str, float | None]:
        """A statistic of the chosen runs; without one where there are none."""
        if not chosen.any() or (len(values) > 1 and not values[1][chosen].sum() > 0):
            return {"estimate": None, "low": None, "high": None}
        cluster = np.broadcast_to(self.twins[:, None], chosen.shape)[chosen]
        return statistic(*(value[chosen] for value in values), cluster).document()

    @staticmethod
    def _roughly(values: Floats, cluster: NDArray[np.str_]) -> Interval:
        """Of what there is a lot of; a page with it is made anew in every test."""
        return clustered_mean(values, cluster, resamples=_FEW_SAMPLES)

    def _line(
        self, name: str, metric: str, found: Mapping[str, float | None], n: int
    ) -> Iterator[dict[str, Any]]:
        if found["estimate"] is not None:
            low, high = (
                None if end is None or not math.isfinite(end) else end
                for end in (found["low"], found["high"])
            )
            yield self._row(name, metric, found["estimate"], low, high, n)

    def _row(
        self, name: str, metric: str, value: float, low: float | None, high: float | None, n: int
    ) -> dict[str, Any]:
        paper = None
        method = self.methods.get(name)
        if (
            method is not None
            and method["kind"] == AGENT
            and method["solver"] != "gas"
            and method["evaluations"] == PAPER_EVALUATIONS
            and "memory" in self.task
        ):
            paper = PAPER.get(metric)
        return {
            "task": self.task, "method": name, "metric": metric, "value": value, "low": low, "high": high, "n": n,
            "paper": paper,
        }  # fmt: skip


def _by_seed(column: Mapping[str, Any] | None, method: Mapping[str, Any], seeds: int) -> list[float]:
    """Values of a column on one graph; one that draws no random number has the same for every seed."""
    if column is None:
        return [math.nan] * seeds
    values = [math.inf if value is None else float(value) for value in column["values"]]
    if not method["random"]:
        return values[:1] * seeds
    return (values + [math.nan] * seeds)[:seeds]
