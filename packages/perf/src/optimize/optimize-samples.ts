import { readFile } from "node:fs/promises";
import {
  type GenerateOptions,
  generateSamples,
  type Labels,
  type ModelRunner,
  type OnnxModel,
  type Sample,
} from "@tritonjs/backends/optimize";
import { Tensor } from "@tritonjs/protocol";
import { invalidOption } from "../command/tool-errors.js";
import type { TestedModel } from "../data/data-set.js";
import { loadDataSet } from "../data/load-data-set.js";

/** Where samples come from. */
export interface SampleOptions extends Pick<GenerateOptions, "dimensions" | "seed"> {
  /** Shapes of inputs with variable dimensions, without the rows of a model whose first dimension is open. */
  readonly shapes?: Readonly<Record<string, readonly number[]>>;
  /** JSON files in the format of perf_analyzer, one row in each entry. @default generated inputs */
  readonly inputData?: readonly string[];
  /** Samples that are generated. @default 32 */
  readonly count?: number;
  /** Right classes of the rows, or a file with one in each line. */
  readonly labels?: string | readonly number[];
  /** Output that the labels are for. @default the first output with scores */
  readonly labelOutput?: string;
}

/** The samples of a run, each of one row. */
export interface SampleSet {
  readonly samples: readonly Sample[];
  readonly labels?: Labels;
  readonly isGenerated: boolean;
}

/** Whether the first dimension of all inputs and outputs is open, so that requests can be joined. */
export function canBatch({ inputs, outputs }: Pick<ModelRunner, "inputs" | "outputs">): boolean {
  return [...inputs, ...outputs].every(({ shape, rankUnknown }) => !rankUnknown && shape[0] === -1);
}

/**
 * Reads or generates the samples.
 *
 * @throws TritonError INVALID_ARG that names the file, the entry and the input; or for inputs that cannot be generated
 */
export async function samplesOf(
  model: OnnxModel,
  runner: ModelRunner,
  options: SampleOptions,
): Promise<SampleSet> {
  const { inputData, count = 32, labels, shapes = {} } = options;
  const rows = canBatch(runner) ? [1] : [];
  const whole = Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => [name, [...rows, ...shape]]),
  );
  const samples =
    inputData === undefined || inputData.length === 0
      ? generateSamples(model, runner.inputs, { ...options, shapes: whole, count })
      : await givenSamples(runner, inputData, options.shapes);
  const classes = typeof labels === "string" ? await readLabels(labels) : labels;
  return {
    samples,
    isGenerated: inputData === undefined || inputData.length === 0,
    ...(classes !== undefined && {
      labels: { classes, ...(options.labelOutput !== undefined && { output: options.labelOutput }) },
    }),
  };
}

async function givenSamples(
  runner: ModelRunner,
  paths: readonly string[],
  shapes: SampleOptions["shapes"],
): Promise<Sample[]> {
  const isBatched = canBatch(runner);
  const model: TestedModel = {
    name: "model",
    version: "",
    maxBatchSize: isBatched ? 1 : 0,
    decoupled: false,
    isSequenceModel: false,
    inputs: runner.inputs.map(({ name, dtype, shape }) => ({
      name,
      datatype: dtype,
      dims: rowShape(shape, isBatched),
      optional: false,
      isShapeTensor: false,
    })),
    outputs: runner.outputs.map(({ name, dtype }) => ({ name, datatype: dtype })),
    composingModels: [],
  };
  const { payloads } = await loadDataSet(model, {
    inputData: paths,
    ...(shapes !== undefined && { shapes }),
  });
  const ranks = new Map(runner.inputs.map(({ name, shape }) => [name, shape.length]));
  return payloads.map(
    ({ inputs }) =>
      new Map(
        inputs.map(({ name, datatype, shape, bytes }) => {
          const dims = isBatched ? shape.slice(0, ranks.get(name)) : shape;
          return [name, Tensor.fromBytes(datatype, dims, bytes)];
        }),
      ),
  );
}

async function readLabels(path: string): Promise<number[]> {
  const text = await readFile(path, "utf8").catch((cause: Error) => {
    throw invalidOption(`--labels: expected a file, cannot read '${path}': ${cause.message}`, cause);
  });
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .map((line, i) => {
      const label = Number(line);
      if (Number.isSafeInteger(label)) return label;
      throw invalidOption(`--labels: ${path}: expected a whole number in line ${i + 1}, got '${line}'`);
    });
}

/** The shape of one row as a configuration has it: `[1]` for a tensor that is nothing but its rows. */
export function rowShape(shape: readonly number[], isBatched: boolean): readonly number[] {
  if (!isBatched) return shape;
  return shape.length > 1 ? shape.slice(1) : [1];
}

/**
 * Samples as a file of input data, as `tritonjs perf --input-data` reads it.
 *
 * @param expected outputs of each sample, which become `validation_data`
 */
export function inputFile(
  samples: readonly Sample[],
  isBatched: boolean,
  expected?: readonly ReadonlyMap<string, Tensor>[],
): string {
  const entry = (tensors: ReadonlyMap<string, Tensor>) =>
    Object.fromEntries(
      [...tensors].map(([name, { shape, bytes }]) => {
        return [name, { b64: Buffer.from(bytes).toString("base64"), shape: rowShape(shape, isBatched) }];
      }),
    );
  const file = {
    data: samples.map(entry),
    ...(expected !== undefined && { validation_data: expected.map(entry) }),
  };
  return `${JSON.stringify(file, undefined, 1)}\n`;
}
