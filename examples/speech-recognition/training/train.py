"""Trains the networks on a corpus of corpus.py.

    python3 train.py FOLDER [--minutes 25]

Writes FOLDER/networks.pt, whenever it has measured its errors and at the end. The rate of learning falls with the
processor time that has passed, so the minutes decide how well the networks hear. The README has the minutes that gave
the weights of this example.
"""

import argparse
import json
import math
import random
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parent.parent / "models/feature_extractor/1"))
from fbank import EPSILON, Fbank  # noqa: E402
from network import Decoder, Encoder  # noqa: E402


class Corpus:
    """Sentences of a set, with their units: 0 is the blank, 1 is never said, the last one is <sos/eos>."""

    def __init__(self, folder, name):
        self.rows = json.loads((folder / f"{name}.json").read_text())
        self.samples = np.memmap(folder / f"{name}.pcm", dtype=np.int16, mode="r")
        vocabulary = json.loads((folder / "units.json").read_text())
        ids = {unit: i + 2 for i, unit in enumerate(vocabulary["units"])}
        self.spelling = {word: [ids[unit] for unit in units] for word, units in vocabulary["spelling"].items()}
        self.names = ["<blank>", "<unk>", *vocabulary["units"], "<sos/eos>"]

    def signal(self, i):
        row = self.rows[i]
        return np.asarray(self.samples[row["at"] : row["at"] + row["samples"]], dtype=np.float32)

    def units(self, i):
        return [unit for word in self.rows[i]["text"].split() for unit in self.spelling[word]]


class Features:
    """Filter banks of a batch in torch; fbank.py has them one by one."""

    def __init__(self):
        self.fbank = Fbank()
        self.window = torch.tensor(self.fbank.window, dtype=torch.float32)
        self.banks = torch.tensor(self.fbank.banks, dtype=torch.float32)

    def __call__(self, signals):
        lengths = torch.tensor([self.fbank.frames_of(len(s)) for s in signals])
        padded = torch.zeros(len(signals), max(map(len, signals)))
        for row, signal in zip(padded, signals):
            row[: len(signal)] = torch.from_numpy(signal)
        frames = padded.unfold(1, self.fbank.length, self.fbank.shift)
        frames = frames - frames.mean(2, keepdim=True)
        frames = torch.cat([frames[..., :1] * 0.03, frames[..., 1:] - 0.97 * frames[..., :-1]], 2)
        power = torch.fft.rfft(frames * self.window, self.fbank.size).abs() ** 2
        return torch.log((power @ self.banks).clamp_min(float(EPSILON))), lengths


def disturbed(signal, r, babble, noisy):
    """Silence at the ends, noise in a part of the signals, a tilt of the spectrum and another loudness."""
    front, back = r.integers(0, 6000), r.integers(0, 4000)
    signal = np.pad(signal, (front, back))
    if r.random() < 0.3:
        tilt = r.uniform(-0.6, 0.6)
        signal = signal + tilt * np.concatenate([[0], signal[:-1]]).astype(np.float32)
    if r.random() < noisy:
        kind = r.random()
        noise = r.standard_normal(len(signal)).astype(np.float32)
        if kind < 0.3:
            noise = np.cumsum(noise - noise.mean())
            noise[1:] = noise[1:] - 0.98 * noise[:-1] if len(noise) > 1 else noise[1:]
        elif kind < 0.5:
            other = babble(r)
            noise = np.resize(other, len(signal)) + 0.05 * other.std() * noise
        level = signal.std() / 10 ** (r.uniform(8, 35) / 20)
        signal = signal + noise * (level / (noise.std() + 1e-9))
    return np.clip(signal * 10 ** (r.uniform(-25, 3) / 20), -32_768, 32_767).astype(np.float32)


def wordless(r):
    """Silence of up to three seconds, half of the time with noise."""
    length = int(r.integers(0, 48_000))
    level = 10 ** r.uniform(0, 3) if r.random() < 0.5 else 0
    return (level * r.standard_normal(length)).astype(np.float32)


def hide(x):
    """Hides bands and moments of a batch of normalized features (SpecAugment)."""
    mask = torch.ones(x.shape[0], x.shape[1], x.shape[2])
    for row in mask:
        width, at = random.randint(0, 10), random.randint(0, 70)
        row[:, at : at + width] = 0
        width, at = random.randint(0, 10), random.randint(0, max(0, x.shape[1] - 10))
        row[at : at + width] = 0
    return mask


def greedy(logits, lengths):
    best = logits.argmax(2).tolist()
    texts = []
    for row, length in zip(best, lengths.tolist()):
        row = row[:length]
        texts.append([u for i, u in enumerate(row) if u != 0 and (i == 0 or row[i - 1] != u)])
    return texts


def text_of(units, names):
    return "".join(names[u] for u in units).replace("▁", " ").strip()


def distance(a, b):
    costs = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, costs[0] = costs[0], i
        for j, y in enumerate(b, 1):
            last, costs[j] = costs[j], min(costs[j] + 1, costs[j - 1] + 1, last + (x != y))
    return costs[-1]


def error_rate(encoder, corpus, features, seed=None):
    """Word error rate of the best path; with a seed the signals are disturbed as in training."""
    encoder.eval()
    wrong = words = 0
    with torch.no_grad():
        for start in range(0, len(corpus.rows), 25):
            rows = range(start, min(start + 25, len(corpus.rows)))
            signals = [corpus.signal(i) for i in rows]
            if seed is not None:
                r = np.random.default_rng(seed + start)
                signals = [disturbed(s, r, lambda q: signals[0], 0.5) for s in signals]
            _, lengths, logits, _ = encoder(*features(signals))
            for i, units in zip(rows, greedy(logits, lengths)):
                expected = corpus.rows[i]["text"].split()
                wrong += distance(expected, text_of(units, corpus.names).split())
                words += len(expected)
    encoder.train()
    return wrong / words


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=25)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(38)
    random.seed(38)
    r = np.random.default_rng(38)
    corpus, dev = Corpus(options.folder, "train"), Corpus(options.folder, "dev")
    units = len(corpus.names)
    features, encoder, decoder = Features(), Encoder(units), Decoder(units)
    sample, lengths = features([corpus.signal(int(i)) for i in r.choice(len(corpus.rows), 200)])
    known = torch.cat([row[:n] for row, n in zip(sample, lengths)])
    encoder.mean.copy_(known.mean(0))
    encoder.scale.copy_(1 / known.std(0))
    parameters = [*encoder.parameters(), *decoder.parameters()]
    print(sum(p.numel() for p in encoder.parameters()), sum(p.numel() for p in decoder.parameters()), flush=True)
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, betas=(0.9, 0.98), weight_decay=0.02)
    order = sorted(range(len(corpus.rows)), key=lambda i: corpus.rows[i]["samples"])
    groups = [order[i : i + 16] for i in range(0, len(order) - 15, 16)]
    # Short sentences come first: they show sooner which sound belongs to which unit.
    short = groups[: len(groups) // 3]
    step, started = 0, time.process_time()
    babble = lambda q: corpus.signal(int(q.integers(len(corpus.rows))))
    while True:
        chosen = short if step < 500 else groups
        random.shuffle(chosen)
        for group in chosen:
            done = (time.process_time() - started) / (60 * options.minutes)
            if done >= 1:
                break
            rate = 1.6e-3 * min(1, (step + 1) / 200) * (0.5 + 0.5 * math.cos(math.pi * done)) + 1e-6
            # The last quarter is calmer: less noise, and nothing hidden.
            calm = done > 0.75
            for one in optimizer.param_groups:
                one["lr"] = rate
            signals = [corpus.signal(i) for i in group]
            if step > 300:
                signals = [disturbed(signal, r, babble, 0.3 if calm else 0.5) for signal in signals]
            texts = [corpus.units(i) for i in group]
            if step > 300:
                # Silence and noise have no words.
                signals[0], texts[0] = wordless(r), []
            speech, lengths = features(signals)
            hides = step > 900 and not calm
            encoded, heard, logits, halfway = encoder(speech, lengths, hide if hides else None)
            flat = torch.tensor([u for text in texts for u in text])
            counts = torch.tensor([len(text) for text in texts])
            score = lambda y: F.ctc_loss(y.log_softmax(2).transpose(0, 1), flat, heard, counts, zero_infinity=True)
            ctc = 0.7 * score(logits) + 0.3 * score(halfway)
            longest = int(counts.max()) + 1
            before = torch.full((len(group), longest), units - 1)
            after = torch.full((len(group), longest), -100)
            for row, text in enumerate(texts):
                before[row, 1 : len(text) + 1] = torch.tensor(text)
                after[row, : len(text) + 1] = torch.tensor([*text, units - 1])
            # A tenth of what the decoder reads is wrong, so that it learns to listen rather than to guess.
            wrong = (torch.rand(before.shape) < 0.1) & (before != units - 1)
            before = torch.where(wrong, torch.randint(2, units - 1, before.shape), before)
            guess = decoder(before, encoded, heard)
            attention = F.cross_entropy(guess.flatten(0, 1), after.flatten(), ignore_index=-100)
            loss = ctc + (0.3 if step > 900 else 0.05) * attention
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 5.0)
            optimizer.step()
            step += 1
            if step % 100 == 0:
                print(f"{step} {done:.3f} ctc {ctc.item():.3f} attention {attention.item():.3f}", flush=True)
            if step % 800 == 0:
                print("dev", error_rate(encoder, dev, features), error_rate(encoder, dev, features, 1), flush=True)
                torch.save({"encoder": encoder.state_dict(), "decoder": decoder.state_dict()}, options.folder / "networks.pt")
        else:
            continue
        break
    torch.save({"encoder": encoder.state_dict(), "decoder": decoder.state_dict()}, options.folder / "networks.pt")
    print("dev", error_rate(encoder, dev, features), error_rate(encoder, dev, features, 1))
    test = Corpus(options.folder, "test")
    print("test", error_rate(encoder, test, features), error_rate(encoder, test, features, 1))


if __name__ == "__main__":
    main()
