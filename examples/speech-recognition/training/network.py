"""The networks in torch: a causal convolutional encoder with CTC, and a small attention decoder.

Each output of the encoder depends on the past alone, so chunks of a stream give what the whole signal gives. `FLUSH`
frames of silence follow each signal, so that the last word can still be told.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

BINS, WIDTH, HIDDEN, BLOCKS, KERNEL, OUT = 80, 128, 384, 6, 13, 256
#: Frames of silence after a signal.
FLUSH = 16
#: Filter bank of samples that are all zero: the logarithm of the smallest step of FP32.
SILENCE = math.log(2**-23)
DECODER, HEADS, LAYERS = 96, 4, 2


class Block(nn.Module):
    """A gated convolution over time, then two linear layers, each added to its input."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.gate = nn.Linear(WIDTH, 2 * WIDTH)
        self.depth = nn.Conv1d(WIDTH, WIDTH, KERNEL, groups=WIDTH)
        self.point = nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        y = F.glu(self.gate(self.norm1(x)), dim=-1)
        y = self.depth(F.pad(y.transpose(1, 2), (KERNEL - 1, 0))).transpose(1, 2)
        x = x + self.point(F.silu(self.norm2(y)))
        return x + self.narrow(F.silu(self.wide(self.norm3(x))))


class Encoder(nn.Module):
    """Filter banks [rows, frames, 80] to encodings [rows, (frames + FLUSH) / 4, 256] and logits of the units.

    While it learns, it also gives the logits that the block in the middle would give.
    """

    def __init__(self, units):
        super().__init__()
        self.register_buffer("mean", torch.zeros(BINS))
        self.register_buffer("scale", torch.ones(BINS))
        self.first = nn.Conv1d(BINS, WIDTH, 4, stride=2)
        self.second = nn.Conv1d(WIDTH, WIDTH, 4, stride=2)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH)
        self.out = nn.Linear(WIDTH, OUT)
        self.ctc = nn.Linear(OUT, units)

    def forward(self, speech, lengths, masks=None):
        inside = torch.arange(speech.shape[1] + FLUSH)[None] < lengths[:, None]
        x = torch.where(inside[..., None], F.pad(speech, (0, 0, 0, FLUSH)), torch.tensor(SILENCE))
        x = ((x - self.mean) * self.scale).clamp(-4, 4)
        if masks is not None:
            x = x * masks(x)
        x = F.silu(self.first(F.pad(x.transpose(1, 2), (2, 0))))
        x = F.silu(self.second(F.pad(x, (2, 0)))).transpose(1, 2)
        halfway = None
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i == BLOCKS // 2 and self.training:
                halfway = self.ctc(F.silu(self.out(self.norm(x))))
        encoded = self.out(self.norm(x))
        return encoded, (lengths + FLUSH) // 4, self.ctc(F.silu(encoded)), halfway


class Attention(nn.Module):
    def __init__(self, source):
        super().__init__()
        self.q, self.o = nn.Linear(DECODER, DECODER), nn.Linear(DECODER, DECODER)
        self.k, self.v = nn.Linear(source, DECODER), nn.Linear(source, DECODER)

    def forward(self, x, source, mask):
        split = lambda y: y.view(y.shape[0], y.shape[1], HEADS, -1).transpose(1, 2)
        q, k, v = split(self.q(x)), split(self.k(source)), split(self.v(source))
        scores = q @ k.transpose(2, 3) / math.sqrt(DECODER / HEADS) + mask
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.o(mixed)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(DECODER) for _ in range(3))
        self.own, self.cross = Attention(DECODER), Attention(OUT)
        self.wide, self.narrow = nn.Linear(DECODER, 4 * DECODER), nn.Linear(4 * DECODER, DECODER)


class Decoder(nn.Module):
    """Logits of the next unit after each unit of a hypothesis. The last unit begins and ends all of them."""

    def __init__(self, units):
        super().__init__()
        self.embedding = nn.Embedding(units, DECODER)
        self.places = nn.Parameter(torch.randn(256, DECODER) * 0.02)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DECODER)
        self.out = nn.Linear(DECODER, units)

    def forward(self, units, encoded, lengths):
        far = torch.tensor(-1e4)
        count = units.shape[1]
        x = self.embedding(units) * math.sqrt(DECODER) + self.places[:count]
        past = torch.triu(far.expand(count, count), 1)
        heard = torch.where(torch.arange(encoded.shape[1])[None] < lengths[:, None], torch.tensor(0.0), far)
        for layer in self.layers:
            x = x + layer.own(y := layer.norms[0](x), y, past)
            x = x + layer.cross(layer.norms[1](x), encoded, heard[:, None, None])
            x = x + layer.narrow(F.silu(layer.wide(layer.norms[2](x))))
        return self.out(self.norm(x))
