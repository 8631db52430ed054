import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { ModelRunner, OnnxModel, replaceFile, type Sample } from "@tritonjs/backends/optimize";
import type { ModelConfig, ModelWarmup } from "@tritonjs/protocol";
import { toConfigDataType } from "@tritonjs/protocol";
import { writePrototxt } from "@tritonjs/repository/config";
import { type RealMeasuring, RepositoryMachine, withoutPinnedMemory } from "../analyze/served-machines.js";
import { inputFile, rowShape } from "./optimize-samples.js";

/** Parts of a repository. */
export interface ModelToServe {
  readonly name: string;
  /** File of the chosen form. */
  readonly file: string;
  /** Configuration of the chosen form as it was measured. */
  readonly config: ModelConfig;
  readonly samples: readonly Sample[];
  readonly isBatched: boolean;
  /** Names of the classes, and the output that has them. */
  readonly classes?: { readonly names: readonly string[]; readonly output: string };
}

/** Samples that the repository has with their answers. */
const SAMPLES = 8;

/**
 * Writes a model folder that a server loads: the file, its configuration with a warm-up of real data, the names of
 * classes, and samples with the answers of this form. Each file of an earlier run is whole until its successor is.
 *
 * @returns the folder
 * @throws TritonError UNAVAILABLE with the path and the system's reason
 */
export async function writeServedModel(repository: string, served: ModelToServe): Promise<string> {
  const { name, file, samples, isBatched, classes } = served;
  const folder = join(repository, name);
  const model = await OnnxModel.read(file);
  await model.write(join(folder, "1", "model.onnx"));
  const few = samples.slice(0, SAMPLES);
  const answers = await answersOf(file, few);
  const [first] = few;
  const { warmup, files } = warmupOf(first!, isBatched);
  for (const [path, bytes] of files) await writeIn(folder, path, bytes);
  if (classes !== undefined) await writeIn(folder, "labels.txt", `${classes.names.join("\n")}\n`);
  await writeIn(folder, "samples.json", inputFile(few, isBatched, answers));
  await writeIn(folder, "config.pbtxt", writePrototxt(withoutPinnedMemory(configOf(served, warmup))));
  return folder;
}

async function writeIn(folder: string, path: string, content: string | Uint8Array): Promise<void> {
  const target = join(folder, path);
  await mkdir(join(target, ".."), { recursive: true });
  await replaceFile(target, [content]);
}

async function answersOf(file: string, samples: readonly Sample[]) {
  const runner = await ModelRunner.open(file);
  try {
    const answers = [];
    for (const sample of samples) answers.push(await runner.run(sample));
    return answers;
  } finally {
    await runner.close();
  }
}

function configOf({ name, config, classes }: ModelToServe, warmup: ModelWarmup): ModelConfig {
  const output = config.output.map((one) =>
    one.name === classes?.output ? { ...one, labelFilename: "labels.txt" } : one,
  );
  return { ...config, name, output, modelWarmup: [warmup] };
}

/** A warm-up with the first sample: random numbers are no use to a model that looks up rows of a table. */
function warmupOf(
  sample: Sample,
  isBatched: boolean,
): { warmup: ModelWarmup; files: [string, Uint8Array][] } {
  const files: [string, Uint8Array][] = [];
  const inputs = [...sample].map(([input, tensor], i) => {
    const inputDataFile = `input_${i}`;
    files.push([join("warmup", inputDataFile), tensor.bytes]);
    const dims = rowShape(tensor.shape, isBatched);
    return [input, { dataType: toConfigDataType(tensor.datatype), dims, inputDataFile }] as const;
  });
  const warmup = {
    name: "sample",
    batchSize: isBatched ? 1 : 0,
    count: 1,
    inputs: Object.fromEntries(inputs),
  };
  return { warmup, files };
}

/**
 * Loads a written model as a server does, with its warm-up.
 *
 * @throws TritonError as loading does
 */
export async function checkServedModel(
  repository: string,
  name: string,
  measuring: RealMeasuring,
): Promise<void> {
  const machine = await RepositoryMachine.open(repository, [name], measuring);
  await machine.close();
}
