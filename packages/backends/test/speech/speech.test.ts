import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type CtcDecoderOptions, ctcDecoder } from "@tritonjs/backends/media";
import { batch, Triton } from "@tritonjs/core";
import { repository as withRepository } from "@tritonjs/repository";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { NgramModel, readArpa } from "../../src/media/ngram-model.js";
import { greedySearch, PrefixBeamSearch, type SearchSettings } from "../../src/media/prefix-beam-search.js";
import { framesOf, type RandomFrames } from "./random-frames.js";

describe("the CTC decoder", () => {
  const vocabulary = ["<blank>", "▁good", "▁day", "s", "<sos/eos>"];

  let triton: Triton;

  let folder: string;

  beforeEach(() => {
    triton = new Triton();
    folder = mkdtempSync(join(tmpdir(), "units-"));
  });

  afterEach(async () => {
    await triton.close();
    rmSync(folder, { recursive: true });
  });

  const bind = (options: Partial<CtcDecoderOptions> = {}, config = {}) =>
    triton.bind({ modelName: "text", inferFunc: ctcDecoder({ vocabulary, ...options }), config });

  /** Inputs of a request with one row: the two likeliest units of each frame. */
  function framesOf(rows: readonly (readonly [number, number, number, number])[], count = rows.length) {
    return {
      batch_log_probs_idx: [rows.map(([first, , second]) => [first, second])],
      batch_log_probs: [rows.map(([, one, , other]) => [Math.log(one), Math.log(other)])],
      encoder_out_lens: [[count]],
    };
  }

  const goodDays = framesOf([
    [1, 0.9, 0, 0.1],
    [2, 0.8, 0, 0.2],
    [0, 0.6, 3, 0.4],
  ]);

  const textOf = (output: { readonly data: ArrayLike<unknown> } | undefined) =>
    new TextDecoder().decode(output!.data[0] as Uint8Array);

  function file(text: string): string {
    const path = join(folder, "file.txt");
    writeFileSync(path, text);
    return path;
  }

  describe("ctcDecoder", () => {
    it.each(["prefix_beam", "greedy"] as const)(
      "(%s) gives the text of the frames that count",
      async (method) => {
        const model = bind({ method });
        expect(textOf((await model.infer(goodDays)).OUTPUT0)).toBe("good day");
        const two = { ...goodDays, encoder_out_lens: [[1]] };
        expect(textOf((await model.infer(two)).OUTPUT0)).toBe("good");
        expect(textOf((await model.infer({ ...goodDays, encoder_out_lens: [[0]] })).OUTPUT0)).toBe("");
      },
    );

    it("prefers hot words, of an object or a file", async () => {
      const model = bind({ hotWords: { days: 1 } });
      expect(textOf((await model.infer(goodDays)).OUTPUT0)).toBe("good days");
      const other = triton.bind({
        modelName: "other",
        inferFunc: ctcDecoder({ vocabulary, hotWords: file('# words\n"days": 1.0\n\ngood: 0\n') }),
      });
      expect(textOf((await other.infer(goodDays)).OUTPUT0)).toBe("good days");
    });

    it("prefers the texts of a language model, in streams only once a word is complete", async () => {
      const ngram = file("\\data\\\nngram 1=3\n\n\\1-grams:\n-1 good\n-3 day\n-0.5 days\n\n\\end\\\n");
      expect(textOf((await bind({ ngram }).infer(goodDays)).OUTPUT0)).toBe("good days");
      const states = [{ input: "past", output: "present", dtype: "BYTES", shape: [1] }] as const;
      const stream = triton.bind({
        modelName: "stream",
        inferFunc: ctcDecoder({ vocabulary, ngram, stream: true }),
        config: { sequence: { states } },
      });
      const ask = (inputs: typeof goodDays, start: boolean, end: boolean) =>
        stream.infer(inputs, { sequence: { id: 1, start, end } });
      expect(textOf((await ask(goodDays, true, false)).OUTPUT0)).toBe("good day");
      expect(textOf((await ask({ ...goodDays, encoder_out_lens: [[0]] }, false, true)).OUTPUT0)).toBe(
        "good days",
      );
    });

    it("tells when the words were heard", async () => {
      const { WORDS } = await bind({ words: true, hotWords: { days: 1 } }).infer(goodDays);
      expect(JSON.parse(textOf(WORDS))).toEqual([
        { word: "good", start: 0, end: 0.04 },
        { word: "days", start: 0.04, end: 0.12 },
      ]);
    });

    it("has another model score the texts of a batch again", async () => {
      const asked: unknown[] = [];
      triton.bind({
        modelName: "decoder",
        inputs: [
          { name: "encoder_out", dtype: "FP32", shape: [-1, 2] },
          { name: "encoder_out_lens", dtype: "INT32", shape: [1] },
          { name: "hyps_pad_sos_eos", dtype: "INT64", shape: [3, -1] },
          { name: "hyps_lens_sos", dtype: "INT32", shape: [3] },
          { name: "ctc_score", dtype: "FP32", shape: [3] },
        ],
        outputs: [{ name: "best_index", dtype: "INT64", shape: [1] }],
        inferFunc: batch(({ hyps_pad_sos_eos, hyps_lens_sos }) => {
          asked.push([...hyps_pad_sos_eos.data].map(Number), [...hyps_lens_sos.data]);
          return { best_index: [[1n]] };
        }),
      });
      const model = bind({ rescorer: "decoder", beam: 3 });
      const { OUTPUT0 } = await model.infer({
        ...goodDays,
        encoder_out: [
          [
            [0, 0],
            [0, 0],
            [0, 0],
          ],
        ],
      });
      expect(textOf(OUTPUT0)).toBe("good days");
      expect(asked).toEqual([
        [
          [4, 1, 2, 4, 4],
          [4, 1, 2, 3, 4],
          [4, 1, 4, 4, 4],
        ].flat(),
        [3, 4, 2],
      ]);
    });

    it("gives the text so far to the requests of a stream", async () => {
      const states = [{ input: "past", output: "present", dtype: "BYTES", shape: [1] }] as const;
      const model = bind({ stream: true, hotWords: { days: 1 } }, { sequence: { states } });
      const texts: string[] = [];
      for (let i = 0; i < 3; i++) {
        const one = (name: "batch_log_probs" | "batch_log_probs_idx") => [[goodDays[name][0]![i]!]];
        const inputs = {
          batch_log_probs: one("batch_log_probs"),
          batch_log_probs_idx: one("batch_log_probs_idx"),
          encoder_out_lens: [[1]],
        };
        const { OUTPUT0 } = await model.infer(inputs, { sequence: { id: 1, start: i === 0, end: i === 2 } });
        texts.push(textOf(OUTPUT0));
      }
      expect(texts).toEqual(["good", "good day", "good days"]);
    });

    it("refuses lengths beyond the frames and unknown units, without disturbing the batch", async () => {
      const model = bind({}, { maxBatchSize: 8 });
      const outcomes = await Promise.all([
        outcomeOf(model.infer({ ...goodDays, encoder_out_lens: [[4]] })),
        outcomeOf(
          model.infer({
            ...goodDays,
            batch_log_probs_idx: [
              [
                [1, 0],
                [9, 0],
                [0, 3],
              ],
            ],
          }),
        ),
        model.infer(goodDays).then(({ OUTPUT0 }) => textOf(OUTPUT0)),
      ]);
      expect(outcomes).toEqual([
        "INVALID_ARG input 'encoder_out_lens': expected 0 to 3 frames, as input 'batch_log_probs' has, got 4",
        "INVALID_ARG input 'batch_log_probs_idx': expected units of the vocabulary, 0 to 4, got 9",
        "good day",
      ]);
    });

    it("refuses bad files with the line", () => {
      const vocabularyOf = (text: string) => thrownBy(() => ctcDecoder({ vocabulary: file(text) }));
      const path = join(folder, "file.txt");
      expect(vocabularyOf("<blank> 0\na b c\n")).toBe(
        `INVALID_ARG ${path}, line 2: expected a unit and a new id, got 'a b c'`,
      );
      expect(vocabularyOf("<blank> 0\na 0\n")).toBe(
        `INVALID_ARG ${path}, line 2: expected a unit and a new id, got 'a 0'`,
      );
      expect(vocabularyOf("<blank> 0\na 2\n")).toBe(
        `INVALID_ARG ${path}: expected a unit with id 1, got none`,
      );
      expect(vocabularyOf("")).toBe(`INVALID_ARG ${path}: expected a unit with id 0, got none`);
      const hotWordsOf = (text: string) => thrownBy(() => ctcDecoder({ vocabulary, hotWords: file(text) }));
      expect(hotWordsOf("days: 1\n- day\n")).toBe(
        `INVALID_ARG ${path}, line 2: expected 'word: bonus', got '- day'`,
      );
      expect(hotWordsOf("days: many\n")).toBe(
        `INVALID_ARG ${path}, line 1: expected 'word: bonus', got 'days: many'`,
      );
      expect(thrownBy(() => ctcDecoder({ vocabulary, ngram: file("\\data\\\nngram 1=a\n") }))).toBe(
        `INVALID_ARG ${path}, line 2: expected 'ngram 1=COUNT', got 'ngram 1=a'`,
      );
      expect(thrownBy(() => ctcDecoder({ vocabulary, wordBonus: 2 }))).toBe(
        "INVALID_ARG wordBonus: expected none without the option 'ngram', got 2",
      );
      const missing = thrownBy(() => ctcDecoder({ vocabulary, ngram: join(folder, "none") }));
      expect(missing).toMatch(/^INVALID_ARG cannot read .*none: ENOENT/);
      expect(thrownBy(() => ctcDecoder({ vocabulary: join(folder, "none") }))).toMatch(
        /^INVALID_ARG cannot read .*none: ENOENT/,
      );
      expect(thrownBy(() => ctcDecoder({ vocabulary, stream: true, rescorer: "decoder" }))).toBe(
        "INVALID_ARG stream: expected only with the method 'prefix_beam' and without a rescorer, got true",
      );
    });
  });

  it("serves a model of a repository, whose vocabulary lies beside it", async () => {
    const config = `backend: "ctc_decoder" max_batch_size: 8
parameters { key: "vocabulary" value: { string_value: "units.txt" } }
parameters { key: "hotwords_path" value: { string_value: "None" } }
output [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] } ]`;
    const units = vocabulary.map((unit, id) => `${unit} ${id}\n`).join("");
    await using repository = await RepositoryOnDisk.create({
      "text/config.pbtxt": config,
      "text/1/units.txt": units,
    });
    await using server = new Triton({ extensions: [withRepository({ modelRepository: repository.path })] });
    expect(textOf((await server.infer("text", goodDays)).TEXT)).toBe("good day");
  });
});

describe("n-gram models", () => {
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
});

const vocabulary = ["<blank>", "▁a", "b", "c", "▁d"];

const settings: SearchSettings = { vocabulary, beam: 10, cutoffProb: 1, hotWords: new Map() };

/** Frames with the probabilities of all units. */
function frames(...rows: readonly Readonly<Record<number, number>>[]): RandomFrames {
  const width = vocabulary.length;
  const logProbs = new Float32Array(rows.length * width);
  const ids = new Int32Array(rows.length * width);
  for (const [i, row] of rows.entries()) {
    const all = vocabulary.map((_, unit) => ({ unit, probability: row[unit] ?? 1e-9 }));
    all.sort((a, b) => b.probability - a.probability);
    logProbs.set(
      all.map(({ probability }) => Math.log(probability)),
      i * width,
    );
    ids.set(
      all.map(({ unit }) => unit),
      i * width,
    );
  }
  return { logProbs, ids, frames: rows.length, width };
}

function search(given: RandomFrames, changes: Partial<SearchSettings> = {}) {
  const made = new PrefixBeamSearch({ ...settings, ...changes });
  made.advance(given.logProbs, given.ids, given.frames, given.width);
  return made.results();
}

describe("a prefix beam search", () => {
  it("adds up the paths of a text, which greedy search does not", () => {
    // The likeliest path is two blanks (0.36), but 'a' has three paths with 0.16 + 0.24 + 0.24.
    const given = frames({ 0: 0.6, 1: 0.4 }, { 0: 0.6, 1: 0.4 });
    const [best, second] = search(given);
    expect(best!.units).toEqual([1]);
    expect(Math.exp(best!.score)).toBeCloseTo(0.64, 6);
    expect(second!.units).toEqual([]);
    expect(greedySearch(given.logProbs, given.ids, 2, given.width).units).toEqual([]);
  });

  it("tells a repeated unit from a long one by the blank between them", () => {
    expect(search(frames({ 2: 1 }, { 2: 1 }, { 3: 1 }))[0]!.units).toEqual([2, 3]);
    expect(search(frames({ 2: 1 }, { 0: 1 }, { 2: 1 }))[0]).toMatchObject({ units: [2, 2], frames: [0, 2] });
  });

  it("has the empty text, of probability 1, before any frame", () => {
    expect(search(frames())).toEqual([{ score: 0, units: [], frames: [] }]);
  });

  it("finds a hot word that is less likely than another, once the bonus is larger than the difference", () => {
    const given = frames({ 1: 0.7, 4: 0.3 }, { 2: 0.9, 3: 0.1 });
    const best = (bonus: number) => search(given, { hotWords: new Map([["dc", bonus]]) })[0]!;
    expect(best(0).units).toEqual([1, 2]);
    expect(best(5).units).toEqual([4, 3]);
    expect(best(5).score).toBeCloseTo(Math.log(0.3 * 0.1) + 5, 5);
  });

  it("goes on from a saved state as if it had not stopped", () => {
    const hotWords = new Map([["ab", 1.5]]);
    fc.assert(
      fc.property(framesOf(5, 4), fc.integer({ min: 1, max: 20 }), (given, size) => {
        const { logProbs, ids, width } = given;
        let state = new Uint8Array();
        let found = search({ ...given, frames: 0 }, { hotWords });
        for (let at = 0; at < given.frames; at += size) {
          const count = Math.min(size, given.frames - at);
          const next = new PrefixBeamSearch({ ...settings, hotWords }, state);
          next.advance(logProbs.subarray(at * width), ids.subarray(at * width), count, width);
          state = next.save() as Uint8Array<ArrayBuffer>;
          found = next.results();
        }
        expect(found).toEqual(search(given, { hotWords }));
      }),
    );
  });
});
