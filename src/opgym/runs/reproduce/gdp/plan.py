"""What ``opgym reproduce gdp`` has to run for its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ....errors import InvalidProblemError, unknown_id
from . import methods
from .measuring import Job
from .methods import Method
from .store import Store
from .workloads import SEEDS, Workload, ablated, chosen, held_out, require_rows, unscreened, workloads

ONE, BATCH, GENERALIZATION, ABLATION = "one", "batch", "generalization", "ablation"
TABLES = (ONE, BATCH, GENERALIZATION, ABLATION)


@dataclass(frozen=True)
class Settings:
    """What is shown, and measured where it is not stored.

    Attributes:
        tables: Of ``TABLES``.
        rows: Only rows with one of these texts in their names; empty: all.
        methods: Of ``methods.NAMES``; ``None``: all.
        seeds: Of core rows; all others have one.
    """

    tables: tuple[str, ...] = TABLES
    rows: tuple[str, ...] = ()
    methods: tuple[str, ...] | None = None
    seeds: int = len(SEEDS)

    def __post_init__(self) -> None:
        for table in self.tables:
            if table not in TABLES:
                raise unknown_id("table", table, list(TABLES))
        if not self.tables:
            raise InvalidProblemError(f"no table; expected at least one of {', '.join(TABLES)}")
        if not 1 <= self.seeds <= len(SEEDS):
            raise InvalidProblemError(f"{self.seeds} seeds; expected 1 to {len(SEEDS)}")
        require_rows(self.rows)
        methods.require_methods(methods.NAMES if self.methods is None else self.methods)
        if not any(self.workloads(table) for table in self.tables) and not self.sample:
            raise InvalidProblemError(
                f"no row of {', '.join(self.tables)} has {' or '.join(map(repr, self.rows))} in its name"
            )

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self == Settings()

    def workloads(self, table: str) -> list[Workload]:
        """Rows of a table."""
        of_table = {ONE: workloads, BATCH: workloads, GENERALIZATION: held_out, ABLATION: ablated}
        return chosen(of_table[table](), self.rows)

    @property
    def sample(self) -> list[Workload]:
        """Rows of the unscreened sample."""
        return chosen(unscreened(), self.rows) if GENERALIZATION in self.tables else []

    def has(self, name: str) -> bool:
        """Whether a method takes part; the portfolio asks for those that it is the best of."""
        asked = methods.NAMES if self.methods is None else self.methods
        return name in asked or (name in methods.HEURISTICS and methods.PORTFOLIO in asked)


def jobs(settings: Settings, store: Store) -> list[Job]:
    """Every run that tables are made of, each once, those on small graphs first.

    Args:
        settings: What is asked for.
        store: What is known: of trained weights that are not there, which were measured.
    """
    found: dict[str, Job] = {}
    for job in _asked(settings, store):
        found.setdefault(job.key if job.method.contestant is not None else job.label, job)
    # In the order of tables those on large graphs would be in the middle of a run that is cut short.
    return sorted(found.values(), key=lambda job: job.workload.ops)


def followers(settings: Settings, store: Store) -> list[Job]:
    """Runs that what others found asks for.

    Annealing with as many evaluations as fine-tuning had on the row; and what stands beside one policy for several
    rows, on those that it has learned from.
    """
    found: list[Job] = []
    if GENERALIZATION in settings.tables and settings.has("annealing"):
        for workload in settings.workloads(GENERALIZATION):
            if (method := as_many(settings, store, workload)) is not None:
                found += _runs(workload, [method], settings)
    if BATCH in settings.tables and settings.has(methods.BATCH):
        own = methods.zero_shot(methods.BATCH)
        human = [method for method in methods.heuristics() if method.name == methods.HUMAN]
        beside = [*human, *methods.learners()]
        asked = [method for method in beside if settings.has(method.name)]
        for workload in settings.workloads(BATCH):
            row = store.find(workload, own, SEEDS[0])
            if row is not None and row["seen"]:
                found += _runs(workload, asked, settings)
    known = {job.key for job in jobs(settings, store)}
    return [job for job in found if job.key not in known]


def as_many(settings: Settings, store: Store, workload: Workload) -> Method | None:
    """Annealing with as many evaluations as fine-tuning had on a row; ``None`` where that is not known yet."""
    spent = []
    for weights in methods.UNSEEN:
        method = methods.fine_tuned(weights)
        for seed in method.seeds(workload, settings.seeds):
            row = store.find(workload, method, seed)
            if row is not None:
                spent.append(row["evaluations"])
            elif method.contestant is not None and settings.has(weights):
                return None
    return methods.annealing_with(max(spent)) if any(spent) else None


def _asked(settings: Settings, store: Store) -> Iterable[Job]:
    for table in settings.tables:
        of_table = _methods_of(settings, table, store)
        for workload in settings.workloads(table):
            yield from _runs(workload, of_table, settings)
    sample = [method for method in methods.heuristics() if settings.has(method.name)]
    sample += [methods.zero_shot(weights) for weights in methods.UNSEEN if settings.has(weights)]
    for workload in settings.sample:
        yield from _runs(workload, sample, settings)


def _methods_of(settings: Settings, table: str, store: Store) -> list[Method]:
    """Methods of a table that take part."""
    rules = [method for method in methods.heuristics() if settings.has(method.name)]
    scratch = [method for method in methods.learners() if settings.has(method.name)]
    searches = [method for method in methods.searches() if settings.has(method.name.partition("@")[0])]
    if table == ONE:
        return [*rules, *searches, *scratch]
    if table == BATCH:
        return [methods.zero_shot(methods.BATCH)] if settings.has(methods.BATCH) else []
    if table == ABLATION:
        return [*scratch[:1], *methods.ablations()] if settings.has(methods.GDP) else []
    few = [method for method in searches if method.name == methods.FEW]
    found = [*rules, *few, *scratch]
    for weights in methods.UNSEEN:
        if settings.has(weights):
            for training in methods.trainings(weights, store.methods):
                found += [methods.zero_shot(training), methods.fine_tuned(training)]
    return found


def _runs(workload: Workload, of_table: Sequence[Method], settings: Settings) -> Iterable[Job]:
    for method in of_table:
        for seed in method.seeds(workload, settings.seeds):
            yield Job(workload, method.on(workload), seed)
