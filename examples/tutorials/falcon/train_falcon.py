"""
Trains the weights of models/falcon7b with numpy alone:

    python3 train_falcon.py models/falcon7b/1/weights.npz [steps]

It learns a page of short lines by heart, with gradients by hand, and Adam. It takes a minute.
"""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "models", "falcon7b", "1"))
from falcon import HEAD, HEADS, LAYERS, WIDTH, rotary  # noqa: E402

TEXT = """How can you be so sure that it will rain, said the owl to the fox.
How do you know when the tea is ready, asked the child.
What is the name of the river behind the mill, asked the boy.
The falcon sees a mouse from the top of the tower.
The old clock in the hall has stopped again.
A model is a program that somebody has to serve.
Once a day the ferry goes to the island and back.
"""
ALPHABET = "".join(sorted(set(TEXT)))
BLOCK, BATCH, RATE = 72, 16, 3e-3


def fresh(rng):
    normal = lambda *shape: (rng.standard_normal(shape) * 0.5 / np.sqrt(shape[0])).astype(np.float32)  # noqa: E731
    w = {"embedding": (rng.standard_normal((len(ALPHABET), WIDTH)) * 0.1).astype(np.float32)}
    for layer in range(LAYERS):
        w["%d.qkv" % layer] = normal(WIDTH, WIDTH + 2 * HEAD)
        w["%d.out" % layer] = normal(WIDTH, WIDTH)
        w["%d.up" % layer] = normal(WIDTH, 4 * WIDTH)
        w["%d.down" % layer] = normal(4 * WIDTH, WIDTH)
    for name in ["norm"] + ["%d.norm" % layer for layer in range(LAYERS)]:
        w[name + ".scale"] = np.ones(WIDTH, np.float32)
        w[name + ".shift"] = np.zeros(WIDTH, np.float32)
    return w


class Norm:
    def __init__(self, x, w, name):
        self.w, self.name = w, name
        centred = x - x.mean(-1, keepdims=True)
        self.inverse = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        self.unit = centred * self.inverse
        self.value = self.unit * w[name + ".scale"] + w[name + ".shift"]

    def back(self, g, grads):
        grads[self.name + ".scale"] += (g * self.unit).sum((0, 1))
        grads[self.name + ".shift"] += g.sum((0, 1))
        g = g * self.w[self.name + ".scale"]
        along = (g * self.unit).mean(-1, keepdims=True)
        return (g - g.mean(-1, keepdims=True) - self.unit * along) * self.inverse


def turn(x, cos, sin):
    half = HEAD // 2
    return x * cos + np.concatenate([-x[..., half:], x[..., :half]], -1) * sin


def turn_back(g, cos, sin):
    half = HEAD // 2
    s = g * sin
    return g * cos + np.concatenate([s[..., half:], -s[..., :half]], -1)


def flat(x):
    return x.reshape(-1, x.shape[-1])


class Block:
    """One layer: x + attention(norm(x)) + mlp(norm(x))."""

    def __init__(self, x, w, layer, cos, sin, mask):
        self.w, self.layer, self.cos, self.sin = w, layer, cos, sin
        part = self.part
        self.norm = Norm(x, w, "%d.norm" % layer)
        n = self.norm.value
        rows, length, _ = n.shape
        fused = n @ part("qkv")
        queries = fused[..., :WIDTH].reshape(rows, length, HEADS, HEAD).transpose(0, 2, 1, 3)
        self.queries = turn(queries, cos, sin)
        self.keys = turn(fused[..., WIDTH : WIDTH + HEAD], cos, sin)[:, None]
        self.values = fused[..., WIDTH + HEAD :][:, None]
        scores = self.queries @ self.keys.swapaxes(-1, -2) / np.sqrt(HEAD) + mask
        self.shares = np.exp(scores - scores.max(-1, keepdims=True))
        self.shares /= self.shares.sum(-1, keepdims=True)
        self.mixed = (self.shares @ self.values).transpose(0, 2, 1, 3).reshape(rows, length, WIDTH)
        self.up = n @ part("up")
        self.tanh = np.tanh(0.7978845608 * (self.up + 0.044715 * self.up**3))
        self.gelu = 0.5 * self.up * (1 + self.tanh)
        self.value = x + self.mixed @ part("out") + self.gelu @ part("down")

    def part(self, name):
        return self.w["%d.%s" % (self.layer, name)]

    def back(self, g, grads):
        def add(name, left, right):
            grads["%d.%s" % (self.layer, name)] += flat(left).T @ flat(right)

        n = self.norm.value
        rows, length, _ = n.shape
        add("down", self.gelu, g)
        add("out", self.mixed, g)
        slope = 0.7978845608 * (1 + 3 * 0.044715 * self.up**2) * (1 - self.tanh**2)
        of_up = (g @ self.part("down").T) * (0.5 * (1 + self.tanh) + 0.5 * self.up * slope)
        add("up", n, of_up)
        of_mixed = (g @ self.part("out").T).reshape(rows, length, HEADS, HEAD).transpose(0, 2, 1, 3)
        of_values = (self.shares.swapaxes(-1, -2) @ of_mixed).sum(1)
        of_shares = of_mixed @ self.values.swapaxes(-1, -2)
        of_scores = self.shares * (of_shares - (of_shares * self.shares).sum(-1, keepdims=True)) / np.sqrt(HEAD)
        of_queries = turn_back(of_scores @ self.keys, self.cos, self.sin)
        of_keys = turn_back((of_scores.swapaxes(-1, -2) @ self.queries).sum(1), self.cos, self.sin)
        of_queries = of_queries.transpose(0, 2, 1, 3).reshape(rows, length, WIDTH)
        of_fused = np.concatenate([of_queries, of_keys, of_values], -1)
        add("qkv", n, of_fused)
        return g + self.norm.back(of_fused @ self.part("qkv").T + of_up @ self.part("up").T, grads)


def loss_and_gradients(w, inputs, targets):
    length = inputs.shape[1]
    cos, sin = rotary(0, length)
    mask = np.triu(np.full((length, length), -1e9, np.float32), 1)
    x = w["embedding"][inputs]
    blocks = []
    for layer in range(LAYERS):
        blocks.append(Block(x, w, layer, cos, sin, mask))
        x = blocks[-1].value
    norm = Norm(x, w, "norm")
    scores = norm.value @ w["embedding"].T
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    shares = scores / scores.sum(-1, keepdims=True)
    row, column = np.indices(targets.shape)
    loss = -np.log(shares[row, column, targets] + 1e-9).mean()
    shares[row, column, targets] -= 1
    g = shares / targets.size
    grads = {name: np.zeros_like(value) for name, value in w.items()}
    grads["embedding"] += flat(g).T @ flat(norm.value)
    g = norm.back(g @ w["embedding"], grads)
    for block in reversed(blocks):
        g = block.back(g, grads)
    np.add.at(grads["embedding"], inputs, g)
    return loss, grads


def main(path, steps):
    rng = np.random.default_rng(5)
    codes = np.array([ALPHABET.index(letter) for letter in TEXT])
    starts = np.array([0] + [i + 1 for i, letter in enumerate(TEXT[:-1]) if letter == "\n"])
    w = fresh(rng)
    first, second = ({name: np.zeros_like(value) for name, value in w.items()} for _ in range(2))
    for step in range(1, steps + 1):
        begin = rng.choice(starts, BATCH)
        at = (begin[:, None] + np.arange(BLOCK + 1)) % len(codes)
        loss, grads = loss_and_gradients(w, codes[at[:, :-1]], codes[at[:, 1:]])
        rate = RATE * min(1, step / 30) * (1 - 0.9 * step / steps)
        for name, g in grads.items():
            first[name] += 0.1 * (g - first[name])
            second[name] += 0.01 * (g * g - second[name])
            mean, square = first[name] / (1 - 0.9**step), second[name] / (1 - 0.99**step)
            w[name] -= rate * mean / (np.sqrt(square) + 1e-8)
        if step % 50 == 0:
            print("step %d: loss %.3f" % (step, loss), flush=True)
    np.savez_compressed(path, alphabet=ALPHABET, **{name: value.astype(np.float16) for name, value in w.items()})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 300)
