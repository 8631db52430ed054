"""Counts the words of the training sentences, and writes a language model of n-grams in ARPA's format.

    python3 ngram.py FOLDER OUTPUT [--order 2]

FOLDER has train.json as corpus.py wrote it. Probabilities are interpolated with those of shorter n-grams (Witten-Bell):
the more different words follow some words, the likelier is one that never followed them.
"""

import argparse
import json
import math
from collections import Counter, defaultdict
from pathlib import Path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--order", type=int, default=2)
    options = parser.parse_args()
    texts = sorted({row["text"] for row in json.loads((options.folder / "train.json").read_text())})
    counts = [Counter() for _ in range(options.order)]
    for text in texts:
        words = ["<s>", *text.split()]
        for end in range(2, len(words) + 1):
            for n in range(min(options.order, end)):
                counts[n][tuple(words[end - n - 1 : end])] += 1
    followers, totals = defaultdict(set), Counter()
    for counter in counts:
        for gram, count in counter.items():
            followers[gram[:-1]].add(gram[-1])
            totals[gram[:-1]] += count
    spread = {before: len(words) / (len(words) + totals[before]) for before, words in followers.items()}
    vocabulary = len(followers[()])

    def probability(gram):
        before = gram[:-1]
        shorter = probability(gram[1:]) if before else 1 / (vocabulary + 1)
        share = spread.get(before, 1)
        own = counts[len(before)][gram] / totals[before] if totals[before] else 0
        return (1 - share) * own + share * shorter

    log = lambda p: f"{math.log10(p):.4f}"
    unknown = spread[()] / (vocabulary + 1)
    lines = ["\\data\\"]
    # The beginning of a sentence and the unknown word are unigrams too.
    lines += [f"ngram {n + 1}={len(counter) + (2 if n == 0 else 0)}" for n, counter in enumerate(counts)]
    for n, counter in enumerate(counts):
        lines += ["", f"\\{n + 1}-grams:"]
        grams = {gram: log(probability(gram)) for gram in sorted(counter)}
        if n == 0:
            grams = {("<unk>",): log(unknown), ("<s>",): "-99", **grams}
        for gram, value in grams.items():
            backoff = f"\t{log(spread[gram])}" if n + 1 < options.order and gram in spread else ""
            lines.append(f"{value}\t{' '.join(gram)}{backoff}")
    lines += ["", "\\end\\", ""]
    options.output.write_text("\n".join(lines))
    print(options.output, *(len(counter) for counter in counts), "n-grams,", len("\n".join(lines)), "bytes")


if __name__ == "__main__":
    main()
