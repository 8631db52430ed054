import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { expect, it } from "vitest";
import { hasPython, pythonProgram, withoutPython } from "../../../../test/support/python.js";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { readArpa } from "../../src/media/ngram-model.js";
import { PrefixBeamSearch } from "../../src/media/prefix-beam-search.js";
import { framesOf } from "./random-frames.js";

const arpa = fileURLToPath(new URL("./fixtures/small.arpa", import.meta.url));

const program = `
import json, sys
sys.path.insert(0, sys.argv[1])
from ctc import HotWords, Ngram, prefix_beam_search
given = json.load(open(sys.argv[2]))
hot = HotWords(given["hotWords"], given["vocabulary"])
language = Ngram(given["ngram"], given["vocabulary"], given["weight"], given["wordBonus"])
cut = lambda values, width: [values[i : i + width] for i in range(0, len(values), width)]
found = [
    prefix_beam_search(cut(one["logProbs"], one["width"]), cut(one["ids"], one["width"]), given["beam"], given["cutoff"], hot, language)
    for one in given["cases"]
]
print(json.dumps(found))
`;

it.skipIf(!hasPython)(
  `finds the texts of the example's search in Python, with the same scores${withoutPython}`,
  () => {
    const vocabulary = ["<blank>", "▁a", "b", "c", "▁d", "e"];
    const hotWords = { "ab d": 2, dec: 0.5 };
    const cases = fc.sample(framesOf(6, 5), { seed: 38, numRuns: 400 });
    const given = {
      vocabulary,
      hotWords,
      beam: 10,
      cutoff: 0.9999,
      ngram: arpa,
      weight: 0.6,
      wordBonus: 0.8,
      cases: cases.map(({ logProbs, ids, width }) => ({ logProbs: [...logProbs], ids: [...ids], width })),
    };
    const folder = mkdtempSync(join(tmpdir(), "ctc-"));
    try {
      writeFileSync(join(folder, "given.json"), JSON.stringify(given));
      const scoring = join(repositoryRoot, "examples/speech-recognition/models/scoring/1");
      const text = execFileSync(pythonProgram, ["-c", program, scoring, join(folder, "given.json")], {
        maxBuffer: 2 ** 28,
      });
      const wanted = JSON.parse(text.toString()) as readonly (readonly [number, readonly number[]])[][];
      const settings = {
        vocabulary,
        beam: 10,
        cutoffProb: 0.9999,
        hotWords: new Map(Object.entries(hotWords)),
        ngram: { table: readArpa(arpa), weight: 0.6, wordBonus: 0.8 },
      };
      for (const [i, { logProbs, ids, frames, width }] of cases.entries()) {
        const search = new PrefixBeamSearch(settings);
        search.advance(logProbs, ids, frames, width);
        const found = search.results();
        expect(found.map(({ units }) => units)).toEqual(wanted[i]!.map(([, units]) => units));
        for (const [j, { score }] of found.entries()) expect(score).toBeCloseTo(wanted[i]![j]![0], 9);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
