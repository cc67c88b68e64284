"""Sound with recurrent decoders, and its separation: Listen-attend-spell, Tacotron 2, Conv-TasNet."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .gnmt import AdditiveAttention, BidirectionalLayer
from .layers import LSTMCell, State, token_loss, zero_state


class ListenAttendSpell(nn.Module):
    """A pyramid of bidirectional layers, each at half the rate, and a decoder with attention."""

    def __init__(self, layers: int, hidden: int, letters: int = 30) -> None:
        super().__init__()
        self.hidden = hidden
        self.listener = nn.ModuleList(
            BidirectionalLayer(40 if index == 0 else 4 * hidden, hidden, separate=False)
            for index in range(layers)
        )
        self.memory = nn.Linear(2 * hidden, hidden)
        self.letters = nn.Embedding(letters, hidden)
        self.keys = nn.Linear(hidden, hidden, bias=False)
        self.attention = AdditiveAttention(hidden)
        self.first = LSTMCell(2 * hidden, hidden)
        self.second = LSTMCell(hidden, hidden)
        self.head = nn.Linear(2 * hidden, letters)

    def forward(self, sound: Tensor, shifted: Tensor, letters: Tensor | None = None) -> Tensor:
        steps = list(sound.unbind(1))
        for index, layer in enumerate(self.listener):
            if index > 0:
                steps = [torch.cat([a, b], 1) for a, b in zip(steps[::2], steps[1::2], strict=True)]
            steps = layer(steps)
        memory = self.memory(torch.stack(steps, 1))
        keys = self.keys(memory)
        lower: State = zero_state(memory, memory.shape[0], self.hidden)
        upper: State = zero_state(memory, memory.shape[0], self.hidden)
        context = memory.new_zeros(memory.shape[0], self.hidden)
        logits = []
        for letter in self.letters(shifted).unbind(1):
            lower = self.first(torch.cat([letter, context], 1), lower)
            upper = self.second(lower[0], upper)
            context = self.attention(upper[0], keys, memory)
            logits.append(self.head(torch.cat([upper[0], context], 1)))
        stacked = torch.stack(logits, 1)
        return stacked if letters is None else token_loss(stacked, letters)


class Tacotron2(nn.Module):
    """Letters to spectrogram frames: recurrent encoder, location-sensitive attention, decoder, post-net."""

    def __init__(self, letters: int, bands: int = 80) -> None:
        super().__init__()
        self.bands = bands
        self.letters = nn.Embedding(letters, 512)
        encoder = nn.Sequential()
        for _ in range(3):
            encoder.extend([nn.Conv1d(512, 512, 5, padding=2, bias=False), nn.BatchNorm1d(512), nn.ReLU()])
        self.encoder = encoder
        self.recurrent = BidirectionalLayer(512, 256, separate=False)
        self.prenet = nn.Sequential(nn.Linear(bands, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.keys = nn.Linear(512, 128, bias=False)
        self.query = nn.Linear(1024, 128, bias=False)
        self.location = nn.Conv1d(2, 32, 31, padding=15, bias=False)
        self.place = nn.Linear(32, 128, bias=False)
        self.score = nn.Linear(128, 1)
        self.attention_cell = LSTMCell(256 + 512, 1024)
        self.decoder_cell = LSTMCell(1024 + 512, 1024)
        self.frame = nn.Linear(1024 + 512, bands)
        self.stop = nn.Linear(1024 + 512, 1)
        postnet = nn.Sequential()
        for index in range(5):
            outputs = bands if index == 4 else 512
            postnet.append(nn.Conv1d(bands if index == 0 else 512, outputs, 5, padding=2, bias=False))
            postnet.append(nn.BatchNorm1d(outputs))
            if index < 4:
                postnet.append(nn.Tanh())
        self.postnet = postnet

    def forward(self, letters: Tensor, frames: Tensor, stops: Tensor) -> Tensor:
        """The loss with the true frames [batch, time, bands] fed to the decoder."""
        encoded = self.encoder(self.letters(letters).transpose(1, 2))
        memory = torch.stack(self.recurrent(list(encoded.unbind(2))), 1)
        keys = self.keys(memory)
        batch = letters.shape[0]
        attention_state, decoder_state = zero_state(memory, batch, 1024), zero_state(memory, batch, 1024)
        weights = total = memory.new_zeros(batch, memory.shape[1])
        context = memory.new_zeros(batch, 512)
        shown = self.prenet(F.pad(frames, (0, 0, 1, 0))[:, :-1])
        drawn, ends = [], []
        for features in shown.unbind(1):
            attention_state = self.attention_cell(torch.cat([features, context], 1), attention_state)
            places = self.place(self.location(torch.stack([weights, total], 1)).transpose(1, 2))
            asked = self.query(attention_state[0]).unsqueeze(1)
            weights = torch.softmax(self.score(torch.tanh(asked + keys + places)).squeeze(2), 1)
            total = total + weights
            context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
            decoder_state = self.decoder_cell(torch.cat([attention_state[0], context], 1), decoder_state)
            joined = torch.cat([decoder_state[0], context], 1)
            drawn.append(self.frame(joined))
            ends.append(self.stop(joined))
        spectrogram = torch.stack(drawn, 1)
        refined = spectrogram + self.postnet(spectrogram.transpose(1, 2)).transpose(1, 2)
        ending = F.binary_cross_entropy_with_logits(torch.cat(ends, 1), stops)
        return F.mse_loss(spectrogram, frames) + F.mse_loss(refined, frames) + ending


class ConvTasNet(nn.Module):
    """Separates two speakers: learned filters, dilated blocks that estimate masks, filters back."""

    def __init__(self, repeats: int, blocks: int) -> None:
        super().__init__()
        self.encoder = nn.Conv1d(1, 512, 16, 8, bias=False)
        self.norm = nn.GroupNorm(1, 512)
        self.bottleneck = nn.Conv1d(512, 128, 1)
        self.bodies, self.residuals, self.skips = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        count = repeats * blocks
        for index in range(count):
            dilation = 2 ** (index % blocks)
            self.bodies.append(
                nn.Sequential(
                    nn.Conv1d(128, 512, 1),
                    nn.PReLU(),
                    nn.GroupNorm(1, 512),
                    nn.Conv1d(512, 512, 3, 1, dilation, dilation, groups=512),
                    nn.PReLU(),
                    nn.GroupNorm(1, 512),
                )
            )
            if index < count - 1:
                self.residuals.append(nn.Conv1d(512, 128, 1))
            self.skips.append(nn.Conv1d(512, 128, 1))
        self.mask = nn.Sequential(nn.PReLU(), nn.Conv1d(128, 1024, 1), nn.Sigmoid())
        self.decoder = nn.ConvTranspose1d(512, 1, 16, 8, bias=False)

    def forward(self, mixture: Tensor, speakers: Tensor | None = None) -> Tensor:
        encoded = F.relu(self.encoder(mixture))
        features = self.bottleneck(self.norm(encoded))
        total: Tensor | None = None
        for index, (body, skip) in enumerate(zip(self.bodies, self.skips, strict=True)):
            hidden = body(features)
            total = skip(hidden) if total is None else total + skip(hidden)
            if index < len(self.residuals):
                features = features + self.residuals[index](hidden)
        masks = self.mask(total).chunk(2, 1)
        apart = torch.cat([self.decoder(encoded * mask) for mask in masks], 1)
        return apart if speakers is None else -signal_to_noise(apart, speakers)


def signal_to_noise(estimated: Tensor, target: Tensor) -> Tensor:
    """Mean scale-invariant signal-to-noise ratio, in decibels."""
    estimated, target = estimated - estimated.mean(2, keepdim=True), target - target.mean(2, keepdim=True)
    power = target.square().sum(2, keepdim=True) + 1e-8
    wanted = (estimated * target).sum(2, keepdim=True) / power * target
    noise = (estimated - wanted).square().sum(2) + 1e-8
    return 10 * torch.log10(wanted.square().sum(2) / noise + 1e-8).mean()
