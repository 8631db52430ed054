"""Copies sentences of the test set to the folder recordings.

    python3 recordings.py FOLDER
"""

import argparse
import json
import wave
from pathlib import Path

import numpy as np

COUNT, RATE = 12, 16_000

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path)
folder = parser.parse_args().folder
rows = json.loads((folder / "test.json").read_text())
samples = np.memmap(folder / "test.pcm", dtype=np.int16, mode="r")
target = Path(__file__).parent.parent / "recordings"
target.mkdir(exist_ok=True)
listed = []
for i, row in enumerate(rows[:: len(rows) // COUNT][:COUNT]):
    name = f"{i + 1:02d}.wav"
    with wave.open(str(target / name), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(samples[row["at"] : row["at"] + row["samples"]].tobytes())
    listed.append({"name": name, "voice": row["voice"], "text": row["text"]})
(target / "recordings.json").write_text(json.dumps(listed, indent=1) + "\n")
