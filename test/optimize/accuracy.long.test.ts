import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gpu } from "@tritonjs/backends/gpu";
import { makeVariant, OnnxModel, prepareModel, writeVariant } from "@tritonjs/backends/optimize";
import { Triton } from "@tritonjs/core";
import { tokenizer } from "@tritonjs/llm";
import { type OptimizeOptions, type OptimizeResult, optimize } from "@tritonjs/perf";
import { repository } from "@tritonjs/repository";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseIris } from "../../examples/quickstart/iris/iris-data.js";
import { WordErrors } from "../../examples/speech-recognition/word-errors.js";
import { repositoryRoot } from "../support/repository.js";
import { SeededRandom } from "../support/seeded-random.js";

/*
 * Forms of the networks of this repository lose at most half a point of the accuracy at their tasks.
 */

const example = (path: string) => join(repositoryRoot, "examples", path);
const folder = mkdtempSync(join(tmpdir(), "tritonjs-accuracy-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Makes forms of a model and compares their answers with labels. */
function optimized(
  name: string,
  inputs: readonly object[],
  labels: readonly number[],
  options: Pick<OptimizeOptions, "model" | "variants"> & Partial<OptimizeOptions>,
): Promise<OptimizeResult> {
  const inputData = join(folder, `${name}.json`);
  writeFileSync(inputData, JSON.stringify({ data: inputs }));
  writeFileSync(join(folder, `${name}.txt`), `${labels.join("\n")}\n`);
  return optimize({
    ...options,
    inputData: [inputData],
    labels: join(folder, `${name}.txt`),
    exportPath: join(folder, name),
    goal: "size",
    batchSizes: [1],
    concurrency: [1],
    intervalMs: 20,
  });
}

const accuracies = ({ variants }: OptimizeResult) =>
  Object.fromEntries(variants.map(({ name, comparison }) => [name, comparison?.accuracy]));

describe("forms of a network keep its accuracy", { timeout: 300_000 }, () => {
  it("of the species of irises", async () => {
    const flowers = parseIris(readFileSync(example("quickstart/iris/iris.csv"), "utf8"));
    const result = await optimized(
      "iris",
      flowers.map(({ measurements }) => ({ measurements })),
      flowers.map(({ species }) => species),
      { model: example("quickstart/iris/iris.onnx"), variants: ["clean", "dynamic-int8", "fp16"] },
    );
    const { original, ...forms } = accuracies(result);
    expect(original).toBeGreaterThan(0.95);
    for (const name of ["clean", "fp16"]) expect(forms[name], name).toBeGreaterThanOrEqual(original! - 0.005);
    // Matrices with fewer than 256 elements stay as they are.
    const unchanged = result.variants.find(({ name }) => name === "dynamic-int8");
    expect(unchanged?.fault).toContain("it has no layer that this changes");
  });

  it("of the next token of stories", async () => {
    const directory = example("text-generation/models/stories/1");
    const random = new SeededRandom(44);
    const rows = await encoded(
      directory,
      Array.from({ length: 120 }, () => story(random)),
    );
    const inputs = rows.map(({ tokens: [...tokens] }) => ({
      input_ids: { content: tokens, shape: [tokens.length] },
      attention_mask: { content: tokens.map(() => 1), shape: [tokens.length] },
      position_ids: { content: tokens.map((_, i) => i), shape: [tokens.length] },
      ...Object.fromEntries(
        [0, 1].flatMap((layer) =>
          ["key", "value"].map((part) => [
            `past_key_values.${layer}.${part}`,
            { content: [], shape: [2, 0, 16] },
          ]),
        ),
      ),
    }));
    const result = await optimized(
      "stories",
      inputs,
      rows.flatMap(({ next }) => next),
      {
        model: join(directory, "model.onnx"),
        variants: ["clean", "dynamic-int8", "int4-weights", "fp16", "fp16-weights"],
      },
    );
    const { original, ...forms } = accuracies(result);
    // Names, animals and things are guesses.
    expect(original).toBeGreaterThan(0.7);
    for (const name of ["clean", "dynamic-int8", "fp16", "fp16-weights"])
      expect(forms[name], name).toBeGreaterThanOrEqual(original! - 0.005);
    expect(forms[result.choice!.variant.name]).toBeGreaterThanOrEqual(original! - 0.005);
  });
});

const pick = <T>(values: readonly T[], random: SeededRandom): T => values[random.below(values.length)]!;

/** A story of the kind that the network was trained on. */
function story(random: SeededRandom): string {
  const [animal, colour] = [
    pick(["cat", "dog", "fox", "owl"], random),
    pick(["red", "blue", "grey"], random),
  ];
  const [name, place] = [pick(["Tom", "Mia", "Max"], random), pick(["forest", "garden", "river"], random)];
  const [thing, helper] = [pick(["ball", "hat", "key"], random), pick(["bird", "boy", "girl"], random)];
  const middle = random.chance(0.5)
    ? [
        `One day ${name} lost a ${thing}.`,
        `${name} was very sad.`,
        `Then a ${helper} came and found the ${thing}.`,
      ]
    : [
        `One day ${name} found a ${thing}.`,
        `${name} was very happy.`,
        `Then a ${helper} came and asked for the ${thing}.`,
        `${name} gave the ${thing} to the ${helper}.`,
      ];
  const lines = [
    `Once there was a ${colour} ${animal}.`,
    `The ${animal} was called ${name} and lived in the ${place}.`,
    ...middle,
    `${name} and the ${helper} were friends from then on.`,
  ];
  return lines.join(" ");
}

/** The tokens of texts between those for the beginning and the end, and the token that follows each. */
async function encoded(directory: string, texts: readonly string[]) {
  const [begin, end] = [0, 1];
  await using triton = new Triton({ logInfo: false });
  const encode = triton.bind({
    modelName: "encode",
    inferFunc: tokenizer({ directory, addSpecialTokens: false }),
  });
  const rows = [];
  for (const text of texts) {
    const { input_ids } = await encode.inferBatch({ text: [[text]] });
    const tokens = [begin, ...Array.from(input_ids.data as BigInt64Array, Number)];
    rows.push({ tokens, next: [...tokens.slice(1), end] });
  }
  return rows;
}

describe("forms of the speech networks hear the same words", { timeout: 300_000 }, () => {
  const recordings = JSON.parse(
    readFileSync(example("speech-recognition/recordings/recordings.json"), "utf8"),
  ) as { readonly name: string; readonly text: string }[];
  let original: WordErrors;
  beforeAll(async () => {
    original = await wordErrors(undefined);
  });

  it.each(["clean", "dynamic-int8", "fp16", "fp16-weights"] as const)("in the form %s", async (form) => {
    const { errors, words } = await wordErrors(form);
    expect(words).toBe(original.words);
    expect((errors - original.errors) / words).toBeLessThanOrEqual(0.005);
  });

  /** Transcribes the recordings with a form of the encoder and the decoder. */
  async function wordErrors(form: Parameters<typeof makeVariant>[0] | undefined): Promise<WordErrors> {
    const place = join(folder, `speech-${form ?? "original"}`);
    for (const part of ["encoder", "decoder"]) {
      const path = join("models", part, "1", `${part}.onnx`);
      const target = join(place, path);
      mkdirSync(dirname(target), { recursive: true });
      copyFileSync(
        example(`speech-recognition/models/${part}/config.pbtxt`),
        join(place, "models", part, "config.pbtxt"),
      );
      const file = example(`speech-recognition/${path}`);
      if (form === undefined) copyFileSync(file, target);
      else {
        const { model } = await makeVariant(form, await prepareModel(await OnnxModel.read(file)));
        await writeVariant(model, target);
      }
    }
    cpSync(example("speech-recognition/steps"), join(place, "steps"), { recursive: true });
    const units = join("scoring", "1", "units.txt");
    mkdirSync(dirname(join(place, "units", units)), { recursive: true });
    copyFileSync(example(`speech-recognition/models/${units}`), join(place, "units", units));
    const config = join(place, "steps", "ctc_scoring", "config.pbtxt");
    writeFileSync(config, readFileSync(config, "utf8").replace("../../models/", "../../units/"));
    const modelRepository = ["models", "steps"].map((part) => join(place, part));
    await using triton = new Triton({
      logInfo: false,
      logWarning: false,
      extensions: [repository({ modelRepository }), gpu({ fallback: "cpu" })],
    });
    await triton.ready();
    const count = new WordErrors();
    for (const { name, text } of recordings) {
      const file = readFileSync(example(`speech-recognition/recordings/${name}`));
      const { waveform } = await triton.infer("wav", { audio: [[file]] });
      const samples = waveform!.data as Float32Array;
      const { TRANSCRIPTS } = await triton.infer("transcribe", {
        WAV: [samples],
        WAV_LENS: [[samples.length]],
      });
      count.add(text, new TextDecoder().decode(TRANSCRIPTS!.data[0] as Uint8Array));
    }
    return count;
  }
});
