"""What our own policy says of problems: a network, and how its numbers are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from .batch import Batch
from .improvement import Found
from .instance import Instance
from .network import PositionNetwork
from .proposals import Expected
from .targets import Target

#: Means and shares of the largest variance keep away from where a Beta distribution ends.
_LEAST_MEAN, _LEAST_SHARE, _MOST_SHARE = 0.004, 0.002, 0.6
#: So do draws from where the density can be infinite.
_LEAST_DRAWN = 1e-4


@dataclass(frozen=True)
class Said:
    """What the policy says of the ops of a batch, with gradients.

    Attributes:
        mean: Position of each op, ``[nodes]``.
        share: Of the largest variance, ``[nodes]``.
        device_1: Logit of device 1, ``[nodes]``.
        sizes: Ops of each instance.
    """

    mean: Tensor
    share: Tensor
    device_1: Tensor
    sizes: tuple[int, ...]

    def expected(self) -> list[Expected]:
        """The same of each instance, as numpy arrays."""
        columns = [
            [part.double().numpy() for part in torch.split(values.detach(), list(self.sizes))]
            for values in (self.mean, self.share, torch.sigmoid(self.device_1))
        ]
        return [Expected(*columns) for columns in zip(*columns, strict=True)]


class Policy(PositionNetwork):
    """The network of a policy, by its shape."""

    def says(self, instances: Sequence[Instance]) -> Said:
        """What it says of some problems."""
        batch = Batch.of(
            [instance.structure for instance in instances], [instance.task.fields for instance in instances]
        )
        position, share, device_1 = self(batch).unbind(1)
        return Said(
            torch.sigmoid(position).clamp(_LEAST_MEAN, 1 - _LEAST_MEAN),
            torch.sigmoid(share).clamp(_LEAST_SHARE, _MOST_SHARE),
            device_1,
            batch.sizes,
        )

    def expects(self, instance: Instance) -> Expected:
        """What it says of one problem: one forward pass."""
        with torch.inference_mode():
            return self.says([instance]).expected()[0]


@dataclass(frozen=True)
class Losses:
    """How far what was said is from targets, means over ops.

    Attributes:
        position: Minus the logarithm of the density at the position of each op that has one.
        device: Cross entropy of the devices; 0 without instances on two devices.
        position_error: Mean distance of positions.
        device_accuracy: Share of devices that were said; NaN without instances on two devices.
    """

    position: Tensor
    device: Tensor
    position_error: float
    device_accuracy: float


def losses_of(said: Said, instances: Sequence[Instance], targets: Sequence[Target]) -> Losses:
    """Compares what was said with solutions.

    Args:
        said: Of a batch.
        instances: Those of the batch.
        targets: A solution of each.
    """
    position = torch.from_numpy(np.concatenate([target.position for target in targets]))
    device_1 = torch.from_numpy(np.concatenate([target.device_1 for target in targets])).float()
    ordered = torch.from_numpy(np.concatenate([~i.problem.graph.is_variable for i in instances]))
    two = torch.tensor([i.task.devices > 1 for i in instances]).repeat_interleave(torch.tensor(said.sizes))
    mean = said.mean[ordered]
    density = _density(mean, said.share[ordered])
    likelihood: Tensor = density.log_prob(position[ordered])  # type: ignore[no-untyped-call]
    error = float((mean.detach() - position[ordered]).abs().mean())
    if not bool(two.any()):
        return Losses(-likelihood.mean(), torch.zeros(()), error, float("nan"))
    cross_entropy = functional.binary_cross_entropy_with_logits(said.device_1[two], device_1[two])
    accuracy = ((said.device_1[two] > 0).float() == device_1[two]).float().mean()
    return Losses(-likelihood.mean(), cross_entropy, error, float(accuracy))


def policy_loss_of(said: Said, instances: Sequence[Instance], found: Sequence[Found]) -> Tensor:
    """The loss of REINFORCE: draws that are better than the others of their graph become more likely.

    It is on positions only, as devices are not drawn by their probabilities. Mean over draws and ops.

    Args:
        said: Of a batch.
        instances: Those of the batch.
        found: What was drawn for each.
    """
    losses = []
    for mean, share, instance, one in zip(
        torch.split(said.mean, list(said.sizes)), torch.split(said.share, list(said.sizes)), instances, found,
        strict=True,
    ):  # fmt: skip
        ops = torch.from_numpy(instance.encoding.ops.astype(np.int64))
        drawn = 1 - torch.from_numpy(one.drawn[:, instance.encoding.priorities])
        density = _density(mean[ops], share[ops])
        likelihood = density.log_prob(drawn.clamp(_LEAST_DRAWN, 1 - _LEAST_DRAWN)).mean(1)  # type: ignore[no-untyped-call]
        losses.append(-(torch.from_numpy(one.advantage) * likelihood).mean())
    return torch.stack(losses).mean()


def _density(mean: Tensor, share: Tensor) -> torch.distributions.Beta:
    size = 1 / share - 1
    return torch.distributions.Beta(mean * size, (1 - mean) * size, validate_args=False)
