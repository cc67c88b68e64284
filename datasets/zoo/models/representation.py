"""Two-sided training and older sequence models: CLIP, SimSiam, memory networks, convolutional seq2seq, highways."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .attention import TransformerLayer, causal_bias
from .layers import token_loss
from .residual import BLOCKS, ResNet, basic
from .vision_transformers import Patches


def normalised(vectors: Tensor) -> Tensor:
    """Vectors of length 1."""
    return vectors * torch.rsqrt(vectors.square().sum(1, keepdim=True) + 1e-12)


class CLIP(nn.Module):
    """An image and a text transformer; matching pairs are told from all others of the batch."""

    def __init__(self, layers: int, width: int, words: int, length: int = 77) -> None:
        super().__init__()
        self.patches = Patches(32, width)
        self.places = nn.Parameter(torch.zeros(49, width))
        self.words = nn.Embedding(words, 512)
        self.positions = nn.Parameter(torch.zeros(length, 512))
        self.image_layers = nn.ModuleList(
            TransformerLayer(width, width // 64, 4 * width) for _ in range(layers)
        )
        self.text_layers = nn.ModuleList(TransformerLayer(512, 8, 2048) for _ in range(layers))
        self.image_norm, self.text_norm = nn.LayerNorm(width), nn.LayerNorm(512)
        self.image_head, self.text_head = nn.Linear(width, 512, bias=False), nn.Linear(512, 512, bias=False)
        self.scale = nn.Parameter(torch.zeros(()))

    def forward(self, images: Tensor, text: Tensor, pairs: Tensor | None = None) -> Tensor:
        seen = self.patches(images) + self.places
        for layer in self.image_layers:
            seen = layer(seen)
        read = self.words(text) + self.positions
        bias = causal_bias(text.shape[1], read)
        for layer in self.text_layers:
            read = layer(read, bias)
        left = normalised(self.image_head(self.image_norm(seen).mean(1)))
        right = normalised(self.text_head(self.text_norm(read)[:, -1]))
        logits = torch.exp(self.scale) * left @ right.t()
        if pairs is None:
            return logits
        return 0.5 * (F.cross_entropy(logits, pairs) + F.cross_entropy(logits.t(), pairs))


class SimSiam(nn.Module):
    """Two views of an image through the same encoder; each predicts the other's frozen projection."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.encoder = ResNet(BLOCKS[depth], basic, expansion=1).features
        self.projector = nn.Sequential(
            nn.Linear(512, 2048), nn.BatchNorm1d(2048), nn.ReLU(), nn.Linear(2048, 2048), nn.BatchNorm1d(2048)
        )
        self.predictor = nn.Sequential(
            nn.Linear(2048, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 2048)
        )

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        left, right = (self.projector(self.encoder(view).mean((2, 3))) for view in (first, second))
        likeness = (normalised(self.predictor(left)) * normalised(right.detach())).sum(1).mean()
        likeness = likeness + (normalised(self.predictor(right)) * normalised(left.detach())).sum(1).mean()
        return -0.5 * likeness


class MemoryNetwork(nn.Module):
    """A question asks the sentences of a story several times over (adjacent weight tying)."""

    def __init__(self, hops: int, width: int, vocabulary: int, sentences: int) -> None:
        super().__init__()
        self.hops = hops
        self.words = nn.ModuleList(nn.Embedding(vocabulary, width) for _ in range(hops + 1))
        self.times = nn.ParameterList(torch.zeros(sentences, width) for _ in range(hops + 1))

    def forward(self, story: Tensor, question: Tensor, answers: Tensor | None = None) -> Tensor:
        state = self.words[0](question).sum(1)
        for hop in range(self.hops):
            keys = self.words[hop](story).sum(2) + self.times[hop]
            values = self.words[hop + 1](story).sum(2) + self.times[hop + 1]
            weights = torch.softmax(torch.bmm(keys, state.unsqueeze(2)), 1)
            state = state + (weights * values).sum(1)
        table = self.words[self.hops]
        assert isinstance(table, nn.Embedding)
        logits = F.linear(state, table.weight)
        return logits if answers is None else F.cross_entropy(logits, answers)


class ConvolutionalSeq2Seq(nn.Module):
    """Encoder and decoder of gated convolutions; every decoder layer attends to the source."""

    def __init__(self, layers: int, width: int, vocabulary: int, length: int) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(vocabulary, width), nn.Parameter(torch.zeros(length, width))
        self.encoder = nn.ModuleList(nn.Conv1d(width, 2 * width, 3, padding=1) for _ in range(layers))
        self.decoder = nn.ModuleList(nn.Conv1d(width, 2 * width, 3) for _ in range(layers))
        self.queries = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.contexts = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.output = nn.Linear(width, vocabulary)

    def forward(self, source: Tensor, shifted: Tensor, targets: Tensor | None = None) -> Tensor:
        embedded = self.words(source) + self.positions
        features = embedded.transpose(1, 2)
        for convolution in self.encoder:
            features = (features + F.glu(convolution(features), 1)) * 0.7071
        keys = features.transpose(1, 2)
        values = keys + embedded
        words = self.words(shifted) + self.positions
        state = words.transpose(1, 2)
        for convolution, query, back in zip(self.decoder, self.queries, self.contexts, strict=True):
            gated = F.glu(convolution(F.pad(state, (2, 0))), 1)
            asked = query(gated.transpose(1, 2)) + words
            context = torch.softmax(asked @ keys.transpose(1, 2), 2) @ values
            state = (state + (gated + back(context).transpose(1, 2)) * 0.7071) * 0.7071
        logits = self.output(state.transpose(1, 2))
        return logits if targets is None else token_loss(logits, targets)


class HighwayNetwork(nn.Module):
    """Fully connected layers, each gating between its transform and its input."""

    def __init__(self, layers: int, width: int, classes: int = 10) -> None:
        super().__init__()
        self.input = nn.Linear(3072, width)
        self.transforms = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.gates = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.head = nn.Linear(width, classes)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor:
        features = self.input(images.flatten(1))
        for transform, gate in zip(self.transforms, self.gates, strict=True):
            share = torch.sigmoid(gate(features))
            features = share * F.relu(transform(features)) + (1 - share) * features
        logits = self.head(features)
        return logits if labels is None else F.cross_entropy(logits, labels)
