"""Runs a training step for real on two processes, one per core, in the order that the simulator gives."""

from .pair import Pair, StepTimes, usable_cores
from .plan import LinkTimes, Plan, plan_step
from .task import Task

__all__ = ["LinkTimes", "Pair", "Plan", "StepTimes", "Task", "plan_step", "usable_cores"]
