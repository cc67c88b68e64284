"""Networks that act: AlphaZero, MuZero, R2D2, IMPALA, Dreamer's world model, Decision Transformer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .attention import TransformerLayer, causal_bias
from .layers import GRUCell, LSTMCell, Residual, State, conv_norm, zero_state


def tower(blocks: int, width: int) -> nn.Sequential:
    """Residual blocks of two 3 x 3 convolutions."""
    layers = nn.Sequential()
    for _ in range(blocks):
        body = nn.Sequential(conv_norm(width, width), conv_norm(width, width, activation=None))
        layers.append(Residual(body, None, nn.ReLU()))
    return layers


class PolicyValue(nn.Module):
    """Policy and value heads over a board."""

    def __init__(self, width: int, board: int, actions: int) -> None:
        super().__init__()
        places = board * board
        self.policy = nn.Sequential(conv_norm(width, 2, 1), nn.Flatten(), nn.Linear(2 * places, actions))
        self.value = nn.Sequential(
            conv_norm(width, 1, 1),
            nn.Flatten(),
            nn.Linear(places, 256),
            nn.ReLU(),
            nn.Linear(256, 1),
            nn.Tanh(),
        )

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        return self.policy(features), self.value(features).squeeze(1)


class AlphaZero(nn.Module):
    """A residual tower with policy and value."""

    def __init__(self, blocks: int, width: int, board: int) -> None:
        super().__init__()
        self.stem = conv_norm(17, width)
        self.tower = tower(blocks, width)
        self.heads = PolicyValue(width, board, board * board + 1)

    def forward(self, boards: Tensor, visits: Tensor | None = None, winners: Tensor | None = None) -> Tensor:
        policy, value = self.heads(self.tower(self.stem(boards)))
        if visits is None or winners is None:
            return torch.cat([torch.softmax(policy, 1), value.unsqueeze(1)], 1)
        return F.cross_entropy(policy, visits) + F.mse_loss(value, winners)


class MuZero(nn.Module):
    """Representation, and dynamics and prediction unrolled over imagined moves.

    Args:
        blocks: Of the representation and of the dynamics.
        width: Channels.
        board: Height and width.
        moves: Imagined moves.
    """

    def __init__(self, blocks: int, width: int, board: int, moves: int) -> None:
        super().__init__()
        self.moves, self.board = moves, board
        self.representation = nn.Sequential(conv_norm(17, width), tower(blocks, width))
        self.dynamics = nn.Sequential(conv_norm(width + 1, width), tower(blocks, width))
        self.reward = nn.Sequential(conv_norm(width, 1, 1), nn.Flatten(), nn.Linear(board * board, 1))
        self.heads = PolicyValue(width, board, board * board)

    def forward(
        self, boards: Tensor, actions: Tensor, visits: Tensor, values: Tensor, rewards: Tensor
    ) -> Tensor:
        state = self.representation(boards)
        places = torch.arange(self.board * self.board, device=boards.device)
        losses = []
        for move in range(self.moves + 1):
            policy, value = self.heads(state)
            losses.append(F.cross_entropy(policy, visits[:, move]) + F.mse_loss(value, values[:, move]))
            if move == self.moves:
                break
            plane = (actions[:, move, None] == places).to(state.dtype).reshape(-1, 1, self.board, self.board)
            state = self.dynamics(torch.cat([state, plane], 1))
            losses.append(F.mse_loss(self.reward(state).squeeze(1), rewards[:, move]))
        return torch.stack(losses).sum()


def atari(frames: int) -> nn.Sequential:
    """The three convolutions of the first deep Q-network, flattened."""
    return nn.Sequential(
        nn.Conv2d(frames, 32, 8, 4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, 2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3),
        nn.ReLU(),
        nn.Flatten(),
    )


class RecurrentReplay(nn.Module):
    """Convolutions, an LSTM over a stored sequence, duelling heads; double Q-learning with a target network."""

    def __init__(self, steps: int, actions: int = 18) -> None:
        super().__init__()
        self.steps, self.actions = steps, actions
        self.online = self.network()
        self.target = self.network().requires_grad_(False)

    def network(self) -> nn.ModuleDict:
        """One of the two networks."""
        return nn.ModuleDict(
            {
                "convolutions": atari(4),
                "cell": LSTMCell(3136, 512),
                "advantage": nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, self.actions)),
                "value": nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)),
            }
        )

    def worth(self, parts: nn.ModuleDict, frames: Tensor) -> Tensor:
        """Worth of each action at each step, [batch, steps, actions]."""
        batch = frames.shape[0]
        features = parts["convolutions"](frames.flatten(0, 1)).reshape(batch, self.steps, -1)
        state: State = zero_state(features, batch, 512)
        outputs = []
        for step in features.unbind(1):
            state = parts["cell"](step, state)
            outputs.append(state[0])
        hidden = torch.stack(outputs, 1)
        advantage = parts["advantage"](hidden)
        return parts["value"](hidden) + advantage - advantage.mean(2, keepdim=True)

    def forward(self, frames: Tensor, actions: Tensor, rewards: Tensor) -> Tensor:
        worth = self.worth(self.online, frames)
        with torch.no_grad():
            best = worth.detach()[:, 1:].argmax(2, keepdim=True)
            later = self.worth(self.target, frames)[:, 1:].gather(2, best).squeeze(2)
        taken = worth[:, :-1].gather(2, actions[:, :-1, None]).squeeze(2)
        return F.smooth_l1_loss(taken, rewards[:, :-1] + 0.997 * later)


class Impala(nn.Module):
    """Deep residual network and LSTM with policy and value; V-trace over an unroll, written out."""

    def __init__(self, steps: int, actions: int = 9) -> None:
        super().__init__()
        self.steps = steps
        layers = nn.Sequential()
        channels = 3
        for width in (16, 32, 32):
            layers.extend([nn.Conv2d(channels, width, 3, padding=1), nn.MaxPool2d(3, 2, 1)])
            for _ in range(2):
                body = nn.Sequential()
                for _ in range(2):
                    body.extend([nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)])
                layers.append(Residual(body))
            channels = width
        self.convolutions = layers.extend([nn.ReLU(), nn.Flatten(), nn.Linear(32 * 9 * 12, 256), nn.ReLU()])
        self.cell = LSTMCell(256, 256)
        self.policy, self.value = nn.Linear(256, actions), nn.Linear(256, 1)

    def forward(self, frames: Tensor, actions: Tensor, rewards: Tensor, behaviour: Tensor) -> Tensor:
        batch = frames.shape[0]
        features = self.convolutions(frames.flatten(0, 1)).reshape(batch, self.steps, 256)
        state: State = zero_state(features, batch, 256)
        hidden = []
        for step in features.unbind(1):
            state = self.cell(step, state)
            hidden.append(state[0])
        stacked = torch.stack(hidden, 1)
        logs = torch.log_softmax(self.policy(stacked), 2)
        values = self.value(stacked).squeeze(2)
        chosen = logs.gather(2, actions.unsqueeze(2)).squeeze(2)
        ratio = torch.exp(chosen - behaviour).clamp(max=1).detach()
        fixed = values.detach()
        correction = torch.zeros_like(fixed[:, 0])
        targets = []
        for step in range(self.steps - 2, -1, -1):
            error = ratio[:, step] * (rewards[:, step] + 0.99 * fixed[:, step + 1] - fixed[:, step])
            correction = error + 0.99 * ratio[:, step] * correction
            targets.append(fixed[:, step] + correction)
        target = torch.stack(targets[::-1], 1)
        later = torch.cat([target[:, 1:], fixed[:, -1:]], 1)
        advantage = ratio[:, :-1] * (rewards[:, :-1] + 0.99 * later - fixed[:, :-1])
        entropy = (torch.exp(logs) * logs).sum(2).mean()
        return 0.5 * F.mse_loss(values[:, :-1], target) - (advantage * chosen[:, :-1]).mean() + 0.01 * entropy


class WorldModel(nn.Module):
    """Dreamer's recurrent state-space model: posterior and prior states along a sequence, decoded to images."""

    def __init__(self, steps: int, actions: int = 6) -> None:
        super().__init__()
        self.steps = steps
        self.encoder = nn.Sequential()
        for a, b in ((3, 32), (32, 64), (64, 128), (128, 256)):
            self.encoder.extend([nn.Conv2d(a, b, 4, 2), nn.ReLU()])
        self.action = nn.Sequential(nn.Linear(30 + actions, 200), nn.ELU())
        self.cell = GRUCell(200, 200)
        self.prior = nn.Sequential(nn.Linear(200, 200), nn.ELU(), nn.Linear(200, 60))
        self.posterior = nn.Sequential(nn.Linear(200 + 1024, 200), nn.ELU(), nn.Linear(200, 60))
        self.expand = nn.Linear(230, 1024)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(1024, 128, 5, 2),
            nn.ReLU(),
            nn.ConvTranspose2d(128, 64, 5, 2),
            nn.ReLU(),
            nn.ConvTranspose2d(64, 32, 6, 2),
            nn.ReLU(),
            nn.ConvTranspose2d(32, 3, 6, 2),
        )
        self.reward = nn.Sequential(nn.Linear(230, 300), nn.ELU(), nn.Linear(300, 1))

    def forward(self, images: Tensor, actions: Tensor, noise: Tensor, rewards: Tensor) -> Tensor:
        batch = images.shape[0]
        embedded = self.encoder(images.flatten(0, 1)).reshape(batch, self.steps, 1024)
        hidden, drawn = images.new_zeros(batch, 200), images.new_zeros(batch, 30)
        states, divergences = [], []
        for step in range(self.steps):
            hidden = self.cell(self.action(torch.cat([drawn, actions[:, step]], 1)), hidden)
            own_mean, own_raw = self.prior(hidden).chunk(2, 1)
            mean, raw = self.posterior(torch.cat([hidden, embedded[:, step]], 1)).chunk(2, 1)
            scale, own_scale = F.softplus(raw) + 0.1, F.softplus(own_raw) + 0.1
            drawn = mean + scale * noise[:, step]
            ratio = (scale.square() + (mean - own_mean).square()) / (2 * own_scale.square())
            divergences.append((torch.log(own_scale / scale) + ratio - 0.5).sum(1))
            states.append(torch.cat([hidden, drawn], 1))
        features = torch.stack(states, 1).flatten(0, 1)
        seen = self.decoder(self.expand(features)[:, :, None, None])
        rewarded = F.mse_loss(self.reward(features).squeeze(1), rewards.flatten())
        return F.mse_loss(seen, images.flatten(0, 1)) + rewarded + torch.stack(divergences).mean()


class DecisionTransformer(nn.Module):
    """Returns, states and actions in turn as one causal sequence; the actions are predicted."""

    def __init__(self, layers: int, width: int, heads: int, steps: int) -> None:
        super().__init__()
        self.steps, self.width = steps, width
        self.returns, self.states, self.actions = (
            nn.Linear(1, width),
            nn.Linear(17, width),
            nn.Linear(6, width),
        )
        self.times = nn.Embedding(1000, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(TransformerLayer(width, heads, 4 * width) for _ in range(layers))
        self.head = nn.Sequential(nn.Linear(width, 6), nn.Tanh())

    def forward(
        self, returns: Tensor, states: Tensor, actions: Tensor, times: Tensor, done: Tensor | None = None
    ) -> Tensor:
        time = self.times(times)
        parts = [self.returns(returns) + time, self.states(states) + time, self.actions(actions) + time]
        features = self.norm(torch.stack(parts, 2).flatten(1, 2))
        bias = causal_bias(3 * self.steps, features)
        for layer in self.layers:
            features = layer(features, bias)
        predicted = self.head(features.reshape(-1, self.steps, 3, self.width)[:, :, 1])
        return predicted if done is None else F.mse_loss(predicted, done)
