"""The bar: what it says where somebody looks, and silence where nobody does."""

import io

import pytest
from rich.console import Console

from opgym.runs.tracking import make_tracker
from opgym.runs.tracking.console import ConsoleTracker, duration


class Bar:
    """A tracker on a terminal of its own, with a clock that passes by hand."""

    def __init__(self, **options):
        self.now = 0.0
        self.terminal = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=200)
        self.tracker = ConsoleTracker("ppo", console=self.terminal, clock=lambda: self.now, **options)

    def says(self, steps, seconds, **values):
        """The last line after a log at some time."""
        self.now = seconds
        self.tracker.log(steps, {f"charts/{name}": value for name, value in values.items()})
        return self.terminal.file.getvalue().rstrip().split("\r")[-1]


def test_it_says_steps_speed_best_value_ratio_and_time_left():
    bar = Bar(total_steps=10_000, unit="ns")
    line = bar.says(2_500, 5.0, best_value=1234.5, ratio_to_reference=0.95)
    bar.tracker.close()
    assert "ppo" in line
    assert "2,500/10,000 steps, 500 steps/s, best 1,234.5 ns, 0.950 of reference, 0:15 left" in line


def test_it_remembers_the_best_value_while_lines_come_without():
    bar = Bar(total_steps=10_000)
    bar.says(1_000, 1.0, best_value=3.0)
    line = bar.says(2_000, 2.0, value=9.0)
    bar.tracker.close()
    assert "2,000/10,000 steps, 1,000 steps/s, best 3, 0:08 left" in line


def test_it_says_what_the_best_weights_gain():
    bar = Bar(total_steps=100)
    bar.says(40, 1.0, validation_gain=0.0312, best_validation_gain=0.0312)
    line = bar.says(50, 1.0, reward=-1.0)
    bar.tracker.close()
    assert "50/100 steps, 50 steps/s, +3.1% gained on validation problems, 0:01 left" in line


def test_speed_is_that_since_the_training_went_on():
    bar = Bar(total_steps=100, resumed_from=80)
    line = bar.says(90, 10.0)
    bar.tracker.close()
    assert "90/100 steps, 1 steps/s, 0:10 left" in line


def test_at_the_end_no_time_is_left_and_without_an_end_none_is_told():
    bar = Bar(total_steps=100)
    assert "left" not in bar.says(100, 1.0)
    bar.tracker.close()
    bar = Bar(total_steps=None)
    line = bar.says(100, 1.0)
    bar.tracker.close()
    assert "100 steps, 100 steps/s" in line
    assert "left" not in line


def test_it_says_nothing_where_stderr_is_no_terminal(tmp_path, capfd):
    with make_tracker(["console"], tmp_path, {}, total_steps=10) as tracker:
        tracker.log(10, {"charts/best_value": 1.0})
        tracker.summary({"value": 1.0})
        tracker.sync()
    assert capfd.readouterr() == ("", "")


def test_the_cursor_comes_back_after_ctrl_c():
    bar = Bar(total_steps=10)
    with pytest.raises(KeyboardInterrupt), bar.tracker:
        raise KeyboardInterrupt
    written = bar.terminal.file.getvalue()
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1
    bar.tracker.log(5, {})
    assert bar.terminal.file.getvalue() == written


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0:00"), (59.6, "1:00"), (125, "2:05"), (3_723, "1:02:03"), (360_000, "100:00:00")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text
