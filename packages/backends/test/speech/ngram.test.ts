import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { thrownBy } from "../../../../test/support/outcome.js";
import { NgramModel, readArpa } from "../../src/speech/ngram-model.js";
import { PrefixBeamSearch, type SearchSettings } from "../../src/speech/prefix-beam-search.js";

const arpa = fileURLToPath(new URL("./fixtures/small.arpa", import.meta.url));
const table = readArpa(arpa);

interface Case {
  readonly vocabulary: readonly string[];
  readonly probabilities: readonly (readonly number[])[];
  readonly texts: readonly (readonly [number, readonly number[]])[];
}

const { weight, wordBonus, cases } = JSON.parse(
  readFileSync(new URL("./fixtures/ngram.json", import.meta.url), "utf8"),
) as { readonly weight: number; readonly wordBonus: number; readonly cases: readonly Case[] };

/** The frames of a case, the likeliest units first. */
function framesOf({ probabilities, vocabulary }: Case) {
  const sorted = probabilities.map((row) =>
    row.map((probability, unit) => ({ probability, unit })).sort((a, b) => b.probability - a.probability),
  );
  return {
    logProbs: Float32Array.from(sorted.flat(), ({ probability }) => Math.log(probability)),
    ids: Int32Array.from(sorted.flat(), ({ unit }) => unit),
    width: vocabulary.length,
  };
}

const settingsOf = ({ vocabulary }: Case): SearchSettings => ({
  vocabulary,
  // So wide that no text is lost.
  beam: 2000,
  cutoffProb: 1,
  hotWords: new Map(),
  ngram: { table, weight, wordBonus },
});

describe("a search with an n-gram model", () => {
  it.each(cases.map((one, i) => ({ i, one })))(
    "has all texts and scores of the definition (case $i)",
    ({ one }) => {
      const { logProbs, ids, width } = framesOf(one);
      const search = new PrefixBeamSearch(settingsOf(one));
      search.advance(logProbs, ids, one.probabilities.length, width);
      const found = search.results();
      expect(found.map(({ units }) => units)).toEqual(one.texts.map(([, units]) => units));
      for (const [i, { score }] of found.entries()) expect(score).toBeCloseTo(one.texts[i]![0], 5);
    },
  );

  it.each(cases.map((one, i) => ({ i, one })))("goes on from a saved state (case $i)", ({ one }) => {
    const { logProbs, ids, width } = framesOf(one);
    let state = new Uint8Array();
    for (let frame = 0; frame < one.probabilities.length; frame++) {
      const next = new PrefixBeamSearch(settingsOf(one), state);
      next.advance(logProbs.subarray(frame * width), ids.subarray(frame * width), 1, width);
      state = next.save() as Uint8Array<ArrayBuffer>;
    }
    const [best] = new PrefixBeamSearch(settingsOf(one), state).results();
    expect(best!.units).toEqual(one.texts[0]![1]);
    expect(best!.score).toBeCloseTo(one.texts[0]![0], 5);
  });

  it("does not score the last word while it may go on", () => {
    const one = cases[0]!;
    const search = new PrefixBeamSearch(settingsOf(one));
    search.advance(Float32Array.of(0), Int32Array.of(1), 1, 1);
    expect(search.results(false)[0]).toMatchObject({ units: [1], score: 0 });
    const expected = weight * new NgramModel(table).score(["<s>"], "a") + wordBonus;
    expect(search.results()[0]!.score).toBeCloseTo(expected, 12);
  });
});

describe("the reader of ARPA files", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "arpa-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** The reason why a file is refused, after its path. */
  function refusal(change: (text: string) => string): string {
    const path = join(folder, "model.arpa");
    writeFileSync(path, change(readFileSync(arpa, "utf8")));
    return thrownBy(() => readArpa(path)).replace(path, "FILE");
  }

  it("counts unknown words as 10^-100 if the file has no <unk>", () => {
    const model = new NgramModel({ order: 1, probabilities: new Map([["a", -1]]), backoffs: new Map() });
    expect(model.score([], "b")).toBeCloseTo(-100 * Math.LN10);
    expect(model.start).toEqual([]);
  });

  it.each([
    ["nothing in it", () => "", ": expected a line '\\data\\', got none"],
    [
      "half a file",
      (text: string) => text.slice(0, text.indexOf("\\3")),
      ": expected a line '\\end\\', got none",
    ],
    [
      "no counts",
      (text: string) => text.replace(/ngram.*\n/g, ""),
      ", line 5: expected 'ngram 1=COUNT', got '\\1-grams:'",
    ],
    [
      "counts out of order",
      (text: string) => text.replace("ngram 2=6\n", ""),
      ", line 5: expected 'ngram 2=COUNT', got 'ngram 3=3'",
    ],
    [
      "too few n-grams",
      (text: string) => text.replace("2=6", "2=7"),
      ", line 25: expected 1 more n-grams of 2 words, as counted, got '\\3-grams:'",
    ],
    [
      "too many n-grams",
      (text: string) => text.replace("2=6", "2=5"),
      ", line 23: expected 5 n-grams of 2 words, as counted, got '-0.6\t<unk> a'",
    ],
    [
      "a missing section",
      (text: string) => text.replace("\\2-grams:", "\\3-grams:"),
      ", line 17: expected '\\2-grams:', got '\\3-grams:'",
    ],
    [
      "a word as a number",
      (text: string) => text.replace("-0.4\ta ab", "x\ta ab"),
      ", line 20: expected a logarithm of a probability, 2 words, and perhaps a logarithm of a weight, got 'x\ta ab\t-0.35'",
    ],
    [
      "a probability above 1",
      (text: string) => text.replace("-0.4\ta ab", "0.4\ta ab"),
      ", line 20: expected a logarithm of a probability, 2 words, and perhaps a logarithm of a weight, got '0.4\ta ab\t-0.35'",
    ],
    [
      "a missing word",
      (text: string) => text.replace("-0.2\tc cd", "-0.2\tc"),
      ", line 22: expected a logarithm of a probability, 2 words, and perhaps a logarithm of a weight, got '-0.2\tc'",
    ],
    [
      "a word that is not an n-gram of 1",
      (text: string) => text.replace("-0.2\tc cd", "-0.2\tc dc"),
      ", line 22: expected words that are n-grams of 1 word, not 'dc', got '-0.2\tc dc'",
    ],
    [
      "an n-gram twice",
      (text: string) => text.replace("-0.2\tc cd", "-0.2\ta ab"),
      ", line 22: expected a new n-gram, not 'a ab' again, got '-0.2\ta ab'",
    ],
  ] as const)("refuses a file with %s", (_, change, expected) => {
    expect(refusal(change)).toBe(`INVALID_ARG FILE${expected}`);
  });
});
