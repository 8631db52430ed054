"""Speaks the corpus with espeak-ng, and names its units.

    python3 corpus.py FOLDER [--train N] [--dev N] [--test N]

The sets share neither voices nor sentences. A set is one file of 16-bit samples at 16 kHz and one list of sentences.
"""

import argparse
import json
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
import torchaudio

from sentences import WORDS, sentence

RATE = 16_000
ACCENTS = ["en", "en-us", "en-gb-scotland", "en-gb-x-gbclan", "en-gb-x-rp", "en-gb-x-gbcwmd", "en-029"]
VOICES = {
    "train": (
        "adam Alex Alicia Andrea Annie antonio aunty benjamin boris caleb david Diogo ed edward Gene gustave "
        "announcer Henrique iven iven3 Jacky john Lee linda Marco Mario max Michael miguel Mike pablo pedro "
        "quincy RicishayMax RicishayMax3 rob steph Storm Tweaky zac anika f2 f3 f5 grandpa klatt klatt3 m1 m2 "
        "m4 m5 m7 m8 norbert travis"
    ).split(),
    "dev": "Andy Denis iven2 steph2 f1 m3".split(),
    "test": "belinda edward2 Gene2 Hugo marcelo michel paul robert steph3 f4 m6 sandro shelby grandma".split(),
}
#: An accent that only the test set has.
TEST_ACCENTS = ["en-us-nyc"]


def speak(task):
    text, voice, speed, pitch, gap = task
    command = ["espeak-ng", "--stdout", "-v", voice, "-s", str(speed), "-p", str(pitch), "-g", str(gap), text]
    wav = subprocess.run(command, capture_output=True, check=True).stdout
    samples = np.frombuffer(wav[44:], dtype=np.int16).astype(np.float32)
    made = torchaudio.functional.resample(torch.from_numpy(samples), 22_050, RATE)
    heard = np.nonzero(np.abs(made.numpy()) > 50)[0]
    # A tenth of a second of silence stays at each end.
    first, last = max(0, heard[0] - RATE // 10), heard[-1] + RATE // 10
    return np.clip(made.numpy()[first:last], -32_768, 32_767).astype(np.int16)


def tasks_of(name, count, seed, avoid):
    r = random.Random(seed)
    tasks = []
    while len(tasks) < count:
        text = sentence(r)
        if text in avoid:
            continue
        accent = r.choice(ACCENTS + (TEST_ACCENTS if name == "test" else []))
        voice = f"{accent}+{r.choice(VOICES[name])}"
        tasks.append((text, voice, r.randint(120, 210), r.randint(25, 75), r.choice([0, 0, 0, 1, 3])))
    return tasks


def pieces_of(words, merges):
    """Byte pair encoding of a list of words, each counted once: the most frequent neighbours join first."""
    spelled = [["▁" + word[0], *word[1:]] for word in words]
    letters = {"▁" + chr(c) for c in range(97, 123)} | {chr(c) for c in range(97, 123)} | {"'"}
    units = sorted(letters | {unit for word in spelled for unit in word})
    for _ in range(merges):
        counts = {}
        for word in spelled:
            for pair in zip(word, word[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        if not counts:
            break
        pair = min(counts, key=lambda p: (-counts[p], p))
        if counts[pair] < 2:
            break
        joined = "".join(pair)
        if joined not in units:
            units.append(joined)
        for i, word in enumerate(spelled):
            made = []
            for unit in word:
                if made and (made[-1], unit) == pair:
                    made[-1] = joined
                else:
                    made.append(unit)
            spelled[i] = made
    return units, {word: spelled[i] for i, word in enumerate(words)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    for name, count in (("train", 10_000), ("dev", 200), ("test", 500)):
        parser.add_argument(f"--{name}", type=int, default=count)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    units, spelling = pieces_of(WORDS, 220)
    text = json.dumps({"units": units, "spelling": spelling}, ensure_ascii=False, indent=0)
    (options.folder / "units.json").write_text(text)
    avoid = set()
    for seed, name in enumerate(("test", "dev", "train")):
        tasks = tasks_of(name, getattr(options, name), seed + 38, avoid)
        if name != "train":
            avoid |= {task[0] for task in tasks}
        with ThreadPoolExecutor(2) as pool, open(options.folder / f"{name}.pcm", "wb") as out:
            rows, at = [], 0
            for task, samples in zip(tasks, pool.map(speak, tasks)):
                out.write(samples.tobytes())
                rows.append({"text": task[0], "voice": task[1], "speed": task[2], "at": at, "samples": len(samples)})
                at += len(samples)
        (options.folder / f"{name}.json").write_text(json.dumps(rows))
        print(name, len(rows), "sentences", round(at / RATE / 3600, 2), "hours", flush=True)


if __name__ == "__main__":
    main()
