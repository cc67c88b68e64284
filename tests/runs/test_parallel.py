"""Tasks on several processes: the order of results, errors, and early ends."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opgym.errors import InvalidProblemError
from opgym.runs.parallel import Died, as_they_finish, in_order

#: Evaluated in the workers, which cannot import this file: the first task ends last.
_TASK = "(__import__('time').sleep({}), {}, __import__('os').getpid())[1:]"


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_tasks(workers):
    tasks = [_TASK.format(0.2 if number == 0 else 0, number) for number in range(6)]
    results = list(in_order(eval, tasks, workers))
    assert [number for number, _ in results] == list(range(6))
    assert (os.getpid() in {pid for _, pid in results}) == (workers == 1)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_task_arrives(workers):
    results = in_order(math.sqrt, [4.0, -1.0, 9.0], workers)
    assert next(results) == 2.0
    with pytest.raises(ValueError, match="math domain"):
        next(results)


def test_one_may_stop_reading():
    results = in_order(math.sqrt, [4.0] * 50, 2)
    assert next(results) == 2.0
    results.close()


def test_no_tasks_and_no_workers():
    assert list(in_order(math.sqrt, [], 2)) == []
    with pytest.raises(InvalidProblemError, match="0 workers"):
        next(in_order(math.sqrt, [1.0], 0))


@pytest.mark.parametrize("workers", [1, 2])
def test_what_follows_from_a_result_is_done_too(workers):
    def follow_up(task, result):
        return [task + 100.0] if task < 100 else []

    results = dict(as_they_finish(math.sqrt, [1.0, 4.0, 9.0], workers, follow_up))
    assert results == {task: math.sqrt(task) for task in (1.0, 4.0, 9.0, 101.0, 104.0, 109.0)}


def test_what_finishes_first_comes_first():
    slow, fast = _TASK.format(1.5, 0), _TASK.format(0, 1)
    assert [task for task, _ in as_they_finish(eval, [slow, fast, fast], 2)] == [fast, fast, slow]


def test_a_process_that_dies_costs_no_other_task_its_result():
    deadly = "__import__('os')._exit(3)"
    tasks = [str(number) for number in range(5)]
    results = dict(as_they_finish(eval, [*tasks[:2], deadly, *tasks[2:]], 2))
    assert isinstance(results.pop(deadly), Died)
    assert results == {task: int(task) for task in tasks}


def test_no_workers_do_nothing():
    with pytest.raises(InvalidProblemError, match="0 workers"):
        next(as_they_finish(math.sqrt, [1.0], 0))


def test_an_interrupt_while_workers_start_is_heard_by_the_parent_alone(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(
        "import signal\n"
        "from opgym.runs.parallel import in_order\n"
        "if __name__ == '__main__':\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it\n"
        "    print('begin', flush=True)\n"
        "    try:\n"
        "        list(in_order(eval, ['__import__(\"time\").sleep(1)'] * 4, 2))\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted', flush=True)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout.readline() == "begin\n"
    time.sleep(0.08)
    os.killpg(parent.pid, signal.SIGINT)  # as a terminal does: to all of the processes
    out, err = parent.communicate(timeout=60)
    assert (out, err) == ("interrupted\n", "")


def test_no_worker_outlives_a_killed_parent(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(
        "import os, time\n"
        "from opgym.runs.parallel import in_order\n"
        "if __name__ == '__main__':\n"
        "    tasks = ['__import__(\"os\").getpid()'] + ['__import__(\"time\").sleep(60)'] * 3\n"
        "    for result in in_order(eval, tasks, 2):\n"
        "        print(result, flush=True)\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    os.kill(worker, 0)  # it lives
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(200):
        if not _alive(worker):
            return
        time.sleep(0.05)
    pytest.fail("the worker still runs")


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process that has ended may stay in the table until somebody collects it.
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")
