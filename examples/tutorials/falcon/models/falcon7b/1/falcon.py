"""
A decoder of Falcon's architecture in numpy: one layer norm before attention and MLP, which run in parallel, rotary
positions, many heads of queries with one head of keys and values, and tied embeddings.
"""

import numpy as np

LAYERS, WIDTH, HEADS, CONTEXT = 2, 48, 4, 128
HEAD = WIDTH // HEADS
END = "\n"


def rotary(position, count):
    """Cosines and sines of `count` positions from `position` on."""
    frequencies = 10000.0 ** (-np.arange(0, HEAD, 2) / HEAD)
    angles = np.outer(np.arange(position, position + count), frequencies)
    angles = np.concatenate([angles, angles], axis=1)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def rotate(x, cos, sin):
    half = HEAD // 2
    turned = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return x * cos + turned * sin


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def layer_norm(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * scale + shift


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


class Falcon:
    def __init__(self, path):
        with np.load(path) as stored:
            self.weights = {name: stored[name].astype(np.float32) for name in stored.files if name != "alphabet"}
            self.alphabet = str(stored["alphabet"])
        self.codes = {letter: code for code, letter in enumerate(self.alphabet)}

    def encode(self, text):
        """Letters that the model does not know are left out."""
        return [self.codes[letter] for letter in text if letter in self.codes]

    def forward(self, codes, cache):
        """Returns the scores of the next letter. `cache` has the keys and values of each layer, and grows."""
        w = self.weights
        x = w["embedding"][codes]
        past = 0 if cache[0] is None else cache[0][0].shape[0]
        cos, sin = rotary(past, len(codes))
        for layer in range(LAYERS):
            part = lambda name: w["%d.%s" % (layer, name)]  # noqa: E731
            normed = layer_norm(x, part("norm.scale"), part("norm.shift"))
            fused = normed @ part("qkv")
            queries = fused[:, :WIDTH].reshape(-1, HEADS, HEAD).transpose(1, 0, 2)
            keys, values = fused[:, WIDTH : WIDTH + HEAD], fused[:, WIDTH + HEAD :]
            queries, keys = rotate(queries, cos, sin), rotate(keys, cos, sin)
            if cache[layer] is not None:
                keys = np.concatenate([cache[layer][0], keys])
                values = np.concatenate([cache[layer][1], values])
            cache[layer] = (keys, values)
            scores = queries @ keys.T / np.sqrt(HEAD)
            hidden = np.triu(np.ones((len(codes), past + len(codes)), bool), past + 1)
            attention = softmax(np.where(hidden, -1e9, scores)) @ values
            attention = attention.transpose(1, 0, 2).reshape(-1, WIDTH) @ part("out")
            x = x + attention + gelu(normed @ part("up")) @ part("down")
        last = layer_norm(x[-1], w["norm.scale"], w["norm.shift"])
        return last @ w["embedding"].T

    def generate(self, prompt, most=100):
        """Continues a prompt with the likeliest letters, to the end of the line or of the context."""
        codes = self.encode(prompt)[-CONTEXT + 1 :] or [self.codes[" "]]
        cache = [None] * LAYERS
        text, room = "", min(most, CONTEXT - len(codes))
        while room > 0:
            letter = self.alphabet[int(np.argmax(self.forward(codes, cache)))]
            if letter == END:
                break
            text += letter
            codes = [self.codes[letter]]
            room -= 1
        return prompt + text
