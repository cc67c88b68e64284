"""What the core refuses instead of writing where it must not. Each case has a process of its own: it may crash."""

import subprocess
import sys

import pytest

#: Small objects of each kind.
BEGIN = """
import copy, pickle, threading
import numpy as np
from opgym import _core
from opgym.envs import GraphPlacementEnv, GraphPlacementVectorEnv, OpSchedulingEnv, OpSchedulingVectorEnv

TABLES = GraphPlacementEnv("example/two-branch")._tables.core
VIEW = OpSchedulingEnv("example/two-branch", slots=3)._view

def int32(*values): return np.array(values, np.int32)
def int64(*values): return np.array(values, np.int64)

def layout(held=(8,), allocated=(8, 0), unread=(0, 0), needed=(8, 0), child_ptr=(0, 1, 1), child=(1,),
           read_ptr=(0, 0, 1), read=(0,)):
    return _core.SchedulingLayout(int32(*child_ptr), int32(*child), int32(*read_ptr), int32(*read), int64(*held),
                                  int64(*allocated), int64(*needed), int64(*unread), int64(-1, -1))

def tables(**changed):
    return _core.PlacementTables({**TABLES.__getstate__(), **changed})

def changed(name, index, value):
    array = TABLES.__getstate__()[name].copy()
    array[index] = value
    return tables(**{name: array})

def estimate():
    made = _core.PlacementEstimate(TABLES)
    made.append(0, 1)
    return made

def revive(state):
    made = _core.PlacementEstimate.__new__(_core.PlacementEstimate)
    made.__setstate__(state)
    return made

def expect(error, words, call):
    try:
        call()
    except error as e:
        if words not in str(e):
            raise
        return
    raise SystemExit(f"{words!r} is not said")
"""

REFUSED = {
    "estimates": """
expect(ValueError, 'expected tables', lambda: revive(()))
expect(ValueError, 'expected tables', lambda: revive(estimate().__getstate__()[:2]))
expect(ValueError, 'expected tables', lambda: revive((*estimate().__getstate__(), 0)))
expect(ValueError, 'expected tables', lambda: revive((None, int32(), np.zeros(0, np.int8))))
expect(ValueError, 'expected tables', lambda: revive((TABLES, int64(1) << 40, int64(2))))
expect(ValueError, 'no such group', lambda: revive((TABLES, int32(1 << 20), np.zeros(1, np.int8))))
expect(ValueError, 'no such group', lambda: revive((TABLES, int32(0), np.full(1, 77, np.int8))))
expect(ValueError, 'appended already', lambda: revive((TABLES, int32(0, 0), np.zeros(2, np.int8))))
""",
    "tables": """
writers = TABLES.__getstate__()["output_tensor"].copy()
writers[:] = writers[0]
expect(ValueError, "two groups write one tensor", lambda: tables(output_tensor=writers))
expect(ValueError, 'tensor_readers', lambda: changed('tensor_readers', 0, 5))
expect(ValueError, 'negative', lambda: changed('tensor_bytes', 0, -1))
expect(ValueError, 'pass 2^63', lambda: changed('private_bytes', slice(None), 2**62))
expect(ValueError, 'resources', lambda: tables(num_resources=-3))
expect(ValueError, 'sources', lambda: tables(num_sources=-3))
""",
    "none": """
def batch(views):
    return _core.SchedulingBatch(views, 2, padded_nodes=99, dense=True, threads=1)
for views in ([None], [VIEW, None], []):
    expect((ValueError, TypeError), "", lambda: batch(views))
expect(TypeError, "", lambda: _core.PartialOrder(None))
expect(TypeError, "", lambda: _core.SchedulingView(None, np.zeros((1, 9), np.float32), 1, 1, 1, 1, 1))
expect((ValueError, TypeError, RuntimeError), "", lambda: _core.PlacementBatch([None], 2, 99, True, True, 1))
expect((ValueError, TypeError, RuntimeError), "", lambda: _core.PlacementEstimate(None))
""",
    "endless-batches": """
def step():
    batch = _core.PlacementBatch([TABLES], 4, 2**62, True, False, 1)
    rows = [np.zeros((4, 0), np.int32), np.zeros((4, 2, 15), np.float32), np.zeros(4, np.int32),
            np.zeros(4, np.float32)]
    batch.step(int64(0, 0, 0, 0), None, np.zeros(4), np.zeros(4, bool), np.zeros(4, np.int64),
               np.zeros((4, 2), np.int8), rows)
expect(ValueError, "at most 2^31 - 1", step)
expect(ValueError, "at most 2^31 - 1", lambda: _core.PlacementBatch([TABLES], 2**62, 99, True, True, 1))
def scheduling():
    _core.SchedulingBatch([VIEW], 2**62, padded_nodes=99, dense=True, threads=1)
expect(ValueError, "at most 2^31 - 1", scheduling)
""",
    "rows-of-another-dtype": """
batch = _core.PlacementBatch([TABLES], 2, 99, True, True, 1)
given = [np.zeros((2, 2 * 15 + 23)), np.zeros(2, np.int64), np.zeros((2, 2), np.int8)]
expect(ValueError, "wrong dtype", lambda: batch.observe(int64(0, 1), *given[1:], given[:1]))
""",
    "layouts": """
for name in ("held", "allocated", "unread", "needed"):
    for bytes in (-1, -2**63):
        given = (bytes,) if name == "held" else (bytes, 0)
        expect(ValueError, "bytes", lambda: layout(**{name: given}))
expect(ValueError, "no bytes", lambda: layout(held=(0,)))
most = 2**63 - 1
expect(ValueError, "pass 2^63", lambda: layout(allocated=(most, 1), needed=(most, 1)))
expect(ValueError, "pass 2^63", lambda: layout(allocated=(most, 0), needed=(most, 1)))
expect(ValueError, "than they allocate", lambda: layout(held=(most,)))
expect(ValueError, "than they allocate", lambda: layout(unread=(most, most)))
order = _core.PartialOrder(layout(held=(most,), allocated=(most, 0), needed=(most, 0)))
order.run(0), order.run(1)
assert order.over and order.peak_bytes == most and order.live_bytes == 0
expect(ValueError, "cycle", lambda: layout(child_ptr=(0, 1, 2), child=(1, 0)))
expect(ValueError, "cycle", lambda: layout(child=(0,)))
expect(ValueError, "child does not name each in a row once", lambda: layout(child_ptr=(0, 2, 2), child=(1, 1)))
expect(ValueError, "read does not name each in a row once", lambda: layout(read_ptr=(0, 0, 2), read=(0, 0)))
""",
    "replay-that-fails-half-way": """
nodes = VIEW.start().num_nodes
batch = _core.SchedulingBatch([VIEW], 2, padded_nodes=nodes, dense=True, threads=1)
fresh = _core.SchedulingBatch([VIEW], 2, padded_nodes=nodes, dense=True, threads=1)
def shown(of, step=None):
    arrays = [np.zeros(2, np.int64), np.zeros((2, 3), np.int8), [np.zeros((2, 3 * 17 + 6), np.float32)]]
    if step is None:
        of.observe(int64(0, 1), *arrays)
    else:
        of.step(step, None, np.zeros(2), np.zeros(2, bool), *arrays)
    return [a.tobytes() for a in (*arrays[:2], *arrays[2])]
expect(ValueError, "not ready then", lambda: batch.replay(0, 0, int64(*range(nodes - 1), 0), 3))
assert batch.decisions(0).size == 0 and shown(batch) == shown(fresh)
for _ in range(nodes - 1):
    assert shown(batch, int64(2, 2)) == shown(fresh, int64(2, 2))
""",
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_and_the_process_goes_on(name: str) -> None:
    done = run(REFUSED[name])
    assert done.returncode == 0, f"exit {done.returncode}: {done.stdout}{done.stderr}"


BATCHES = {
    "placement": 'GraphPlacementVectorEnv(64, "example/two-branch", autoreset_mode="SameStep")',
    "scheduling": 'OpSchedulingVectorEnv(64, "synthetic/ws?n=300&seed=0", autoreset_mode="SameStep")',
}


@pytest.mark.parametrize("name", BATCHES)
def test_two_python_threads_do_not_use_one_batch_at_once(name: str) -> None:
    """What comes second is told so; one after the other, any number of threads may use it."""
    done = run(f"""
envs = {BATCHES[name]}
envs.reset(seed=0)
refusals, enough = [], threading.Event()

def play():
    while not enough.is_set():
        try:
            envs._core.decisions(0)
            step(envs)
        except RuntimeError as error:
            refusals.append(str(error))
            enough.set()

def step(envs):
    arrays = [np.empty(shape, dtype) for shape, dtype in envs._layout]
    masks, counts = np.empty((64, envs._num_actions), np.int8), np.empty(64, np.int64)
    envs._core.reset(np.arange(64), np.zeros(64, np.int64))
    envs._core.step(np.zeros(64, np.int64), None, np.empty(64), np.empty(64, bool), counts, masks, arrays)

players = [threading.Thread(target=play) for _ in range(4)]
for player in players:
    player.start()
enough.wait(60)
enough.set()
for player in players:
    player.join()
assert refusals and all("two threads use one batch at the same time" in text for text in refusals), refusals
step(envs)
""")
    assert done.returncode == 0, f"exit {done.returncode}: {done.stdout}{done.stderr}"


def test_threads_that_cannot_start_leave_the_work_to_the_others() -> None:
    """With memory for a few stacks of threads alone."""
    done = run("""
import resource
from opgym.graphs import peak_of_orders

problem = OpSchedulingEnv("example/two-branch").problem
orders = np.tile(problem.ops, (40_000, 1))
expected = peak_of_orders(problem.graph, orders)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 200 * 2**20, used + 200 * 2**20))
for threads in (300, 2**31 - 1):
    assert np.array_equal(peak_of_orders(problem.graph, orders, threads=threads), expected)
""")
    assert done.returncode == 0, f"exit {done.returncode}: {done.stdout}{done.stderr}"


def run(program: str) -> subprocess.CompletedProcess[str]:
    """The program after :data:`BEGIN`, ended where it loops for ever."""
    return subprocess.run(
        [sys.executable, "-c", BEGIN + program], capture_output=True, text=True, check=False, timeout=120
    )
