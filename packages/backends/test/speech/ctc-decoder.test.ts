import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CtcDecoderOptions, ctcDecoder } from "@tritonjs/backends/speech";
import { batch, Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

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
    expect(vocabularyOf("<blank> 0\na 2\n")).toBe(`INVALID_ARG ${path}: expected a unit with id 1, got none`);
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
  await using server = new Triton({ modelRepository: repository.path });
  expect(textOf((await server.infer("text", goodDays)).TEXT)).toBe("good day");
});
