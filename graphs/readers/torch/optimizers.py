"""Update rules, as torch.optim executes them for one parameter: in place, hyperparameters as constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

#: torch.optim's defaults; the step is the first one. They decide no op and no size.
_RATE = 1e-3
_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


@dataclass(frozen=True)
class UpdateRule:
    """How an optimizer updates a parameter.

    Attributes:
        moments: Names of the states it keeps beside each parameter, of the parameter's size.
        update: Gets the parameter, its gradient and its moments, and writes to parameter and moments.
    """

    moments: tuple[str, ...]
    update: Callable[[Tensor, Tensor, list[Tensor]], None]


def _sgd(parameter: Tensor, gradient: Tensor, moments: list[Tensor]) -> None:
    """Stochastic gradient descent without momentum: one op."""
    parameter.add_(gradient, alpha=-_RATE)


def _adam(parameter: Tensor, gradient: Tensor, moments: list[Tensor]) -> None:
    """Kingma, Ba 2015, "Adam: a method for stochastic optimization", algorithm 1: seven ops."""
    mean, square = moments
    mean.lerp_(gradient, 1 - _BETAS[0])
    square.mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1 - _BETAS[1])
    root = square.sqrt() / (1 - _BETAS[1]) ** 0.5
    parameter.addcdiv_(mean, root.add_(_EPSILON), value=-_RATE / (1 - _BETAS[0]))


UPDATE_RULES = {
    "sgd": UpdateRule((), _sgd),
    "adam": UpdateRule(("exp_avg", "exp_avg_sq"), _adam),
}
