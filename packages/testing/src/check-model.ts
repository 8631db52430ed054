import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { concatRows, sliceRows } from "@tritonjs/core/internal";
import {
  arrayDatatype,
  assertOptions,
  type DataType,
  errorFor,
  fromConfigDataType,
  type InferOptions,
  isDecoupled,
  isNdArray,
  type ModelConfig,
  type ModelInput,
  optionTypes,
  Tensor,
  type Tolerance,
  TritonError,
  tensorDifference,
  tensorFromValue,
} from "@tritonjs/protocol";
import { extremesOf, randomTensor, SeededRandom } from "./random-tensors.js";

/** The part of a model that `checkModel` needs. The handle that `bind` returns has it. */
export interface CheckedModel {
  readonly name: string;
  config(): ModelConfig;
  /** Infers with whole tensors: with the batch axis if the model has one. */
  infer(inputs: never, options?: InferOptions): Promise<object>;
  /** Needed for decoupled models. */
  stream?(inputs: never, options?: InferOptions): AsyncIterable<object>;
  /** Both are needed to check two instances. */
  instances?(): readonly object[];
  updateInstances?(count: number): Promise<void>;
}

/** Options of {@link checkModel}. */
export interface CheckModelOptions {
  /**
   * Makes the inputs of one sample, without the batch axis, in any form that a call takes. @default random numbers from
   * -1 to 1, whole numbers from 0 to 9, and words
   */
  readonly sample?: (index: number, random: () => number) => Readonly<Record<string, unknown>>;
  /** Number of samples, at most as many as a batch takes. @default 8 */
  readonly samples?: number;
  /** Seed of random inputs. @default 1 */
  readonly seed?: number;
  /** Differences that count as none, for floating-point outputs. @default { absolute: 1e-5, relative: 1e-3 } */
  readonly tolerance?: Tolerance;
  /** Runs over which memory is watched. @default 1000 */
  readonly runs?: number;
  /** Bytes by which memory may grow with each run. @default 256 for a model on this thread, 16384 for others */
  readonly bytesPerRun?: number;
  /** Checks that are left out. @default none */
  readonly skip?: readonly CheckName[];
}

const OPTION_TYPES = optionTypes<CheckModelOptions>({
  sample: "function",
  samples: "number",
  seed: "number",
  tolerance: "object",
  runs: "number",
  bytesPerRun: "number",
  skip: "array",
});

/** Checks of a model by name, in the order in which they run. */
export const CHECK_NAMES = [
  "repeatability",
  "batch",
  "order",
  "company",
  "padding",
  "results",
  "instances",
  "extremes",
  "empty-batch",
  "memory",
] as const;

export type CheckName = (typeof CHECK_NAMES)[number];

/** The outcome of one check. */
export interface CheckOutcome {
  readonly name: CheckName;
  readonly outcome: "passed" | "failed" | "skipped";
  /** Finding, or the reason why the check was skipped. */
  readonly text: string;
}

/** The outcomes of all checks of a model. */
export interface ModelReport {
  readonly model: string;
  /** True if no check failed. */
  readonly ok: boolean;
  readonly checks: readonly CheckOutcome[];
}

/**
 * Checks that a model treats each row of a batch by itself, and that it can be trusted beside other requests:
 *
 * | check | the model |
 * |---|---|
 * | `repeatability` | answers the same inputs alike: no dropout is left on |
 * | `batch` | answers a batch of n as n single samples: it computes no statistics over the batch |
 * | `order` | keeps the order of rows |
 * | `company` | answers a row alike, whatever the other rows are |
 * | `padding` | answers a short sample alike beside a longer one, for models with dynamic axes |
 * | `results` | does not change a result that it has returned |
 * | `instances` | answers alike with two instances at work |
 * | `extremes` | survives the extremes of each data type |
 * | `empty-batch` | survives a batch without rows |
 * | `memory` | keeps nothing of the requests that it has answered |
 *
 * A model with sequences gets a sequence for each request.
 *
 * @throws TritonError INVALID_ARG for unknown options, and the error of the model if it answers no sample at all.
 * @example
 * ```ts
 * const { ok, checks } = await checkModel(model);
 * for (const { name, outcome, text } of checks) console.log(outcome, name, text);
 * ```
 */
export async function checkModel(model: CheckedModel, options: CheckModelOptions = {}): Promise<ModelReport> {
  assertOptions("checkModel()", options, OPTION_TYPES);
  const unknown = options.skip?.find((name) => !CHECK_NAMES.includes(name));
  if (unknown !== undefined) {
    throw errorFor("INVALID_OPTION", `skip: expected ${CHECK_NAMES.join(", ")}, got '${unknown}'`);
  }
  return new ModelCheck(model, options).run();
}

type Tensors = ReadonlyMap<string, Tensor>;

/** The outputs of each response. */
type Answer = readonly Tensors[];

/** Why a check does not apply. */
class Skipped {
  constructor(readonly text: string) {}
}

class ModelCheck {
  readonly #config: ModelConfig;
  readonly #random: SeededRandom;
  readonly #tolerance: Tolerance;
  readonly #count: number;
  #samples: Tensors[] = [];
  #singles: Answer[] = [];
  #sequences = 0;

  constructor(
    private readonly model: CheckedModel,
    private readonly options: CheckModelOptions,
  ) {
    this.#config = model.config();
    this.#random = new SeededRandom(options.seed ?? 1);
    this.#tolerance = options.tolerance ?? { absolute: 1e-5, relative: 1e-3 };
    const { maxBatchSize } = this.#config;
    this.#count = Math.max(2, Math.min(options.samples ?? 8, maxBatchSize > 0 ? maxBatchSize : 8));
  }

  async run(): Promise<ModelReport> {
    this.#samples = Array.from({ length: this.#count }, (_, i) => this.#sample(i, 4));
    for (const sample of this.#samples) this.#singles.push(await this.#single(sample));
    const checks: CheckOutcome[] = [];
    for (const name of CHECK_NAMES) {
      checks.push(
        this.options.skip?.includes(name)
          ? { name, outcome: "skipped", text: "left out" }
          : await this.#outcome(name, CHECKS[name]),
      );
    }
    return { model: this.model.name, ok: checks.every(({ outcome }) => outcome !== "failed"), checks };
  }

  async #outcome(name: CheckName, check: Check): Promise<CheckOutcome> {
    try {
      const found = await check.call(this, this);
      if (found instanceof Skipped) return { name, outcome: "skipped", text: found.text };
      return found === undefined
        ? { name, outcome: "passed", text: "" }
        : { name, outcome: "failed", text: found };
    } catch (error) {
      return { name, outcome: "failed", text: TritonError.from(error).message };
    }
  }

  /** Answers the same inputs again. */
  async repeatability(): Promise<Found> {
    for (const [i, sample] of this.#samples.entries()) {
      const difference = this.#differs(await this.#single(sample), this.#singles[i]!);
      if (difference !== undefined) return `sample ${i} answered again: ${difference}`;
    }
    return undefined;
  }

  async batch(): Promise<Found> {
    const size = this.#largestBatch();
    return size instanceof Skipped ? size : this.#compareBatch(range(size), "in a batch");
  }

  async order(): Promise<Found> {
    const size = this.#largestBatch();
    if (size instanceof Skipped) return size;
    const places = range(size);
    for (const [order, text] of [
      [places.toReversed(), "in a batch in reverse order"],
      [this.#random.shuffled(places), "in a batch in another order"],
    ] as const) {
      const found = await this.#compareBatch(order, text);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Puts each sample beside copies of one that is far from the others, and beside itself. */
  async company(): Promise<Found> {
    const size = this.#largestBatch();
    if (size instanceof Skipped) return size;
    const strangers = this.#config.input.map((input) => this.#stranger(input));
    const stranger = new Map(
      [...this.#samples[0]!].map(([name, tensor], i) => [name, strangers[i]?.(tensor) ?? tensor]),
    );
    for (const i of range(Math.min(size, 4))) {
      const sample = this.#samples[i]!;
      for (const [others, text] of [
        [[stranger], "beside a sample with other values"],
        [Array.from({ length: size - 1 }, () => sample), "beside copies of itself"],
      ] as const) {
        let answer: Answer;
        try {
          answer = await this.#call(joined([sample, ...others]));
        } catch (error) {
          // A model may refuse the stranger, but not the sample.
          if (others[0] === stranger && TritonError.from(error).code === "INVALID_ARG") continue;
          throw error;
        }
        const difference = this.#differs(rowsOf(answer, 0), this.#singles[i]!);
        if (difference !== undefined) return `sample ${i} ${text}: ${difference}`;
      }
    }
    return undefined;
  }

  /** Sends samples of several lengths at once, which the scheduler puts into one batch where it can. */
  async padding(): Promise<Found> {
    if (this.options.sample === undefined && !this.#config.input.some(({ dims }) => dims.includes(-1))) {
      return new Skipped("the model has no dynamic axes");
    }
    const lengths = [1, 2, 7, 3, 5, 4, 6, 2];
    const samples = lengths.map((length, i) => this.#sample(this.#count + i, length));
    const singles: Answer[] = [];
    for (const sample of samples) singles.push(await this.#single(sample));
    for (let round = 0; round < 3; round++) {
      const order = this.#random.shuffled(range(samples.length));
      const answers = await Promise.all(order.map((i) => this.#single(samples[i]!)));
      for (const [place, i] of order.entries()) {
        const difference = this.#differs(answers[place]!, singles[i]!);
        if (difference !== undefined)
          return `a sample of length ${lengths[i]} beside longer ones: ${difference}`;
      }
    }
    return undefined;
  }

  /** Looks at results after later calls, and sends calls at once. */
  async results(): Promise<Found> {
    const kept = await this.#raw(joined([this.#samples[0]!]));
    const before = kept.map((outputs) => tensorsOf(outputs, "copied"));
    const answers = await Promise.all(this.#samples.map((sample) => this.#single(sample)));
    for (const [i, answer] of answers.entries()) {
      const difference = this.#differs(answer, this.#singles[i]!);
      if (difference !== undefined) return `sample ${i} beside other calls: ${difference}`;
    }
    const difference = this.#differs(
      kept.map((outputs) => tensorsOf(outputs, "viewed")),
      before,
    );
    return difference === undefined ? undefined : `a result changed after a later call: ${difference}`;
  }

  async instances(): Promise<Found> {
    const { model } = this;
    if (model.instances === undefined || model.updateInstances === undefined) {
      return new Skipped("the instances of this model cannot be changed");
    }
    const before = model.instances().length;
    try {
      if (before < 2) await model.updateInstances(2);
    } catch (error) {
      return new Skipped(`the model cannot have two instances: ${TritonError.from(error).message}`);
    }
    try {
      for (let round = 0; round < 4; round++) {
        const order = this.#random.shuffled([...range(this.#count), ...range(this.#count)]);
        const answers = await Promise.all(order.map((i) => this.#single(this.#samples[i]!)));
        for (const [place, i] of order.entries()) {
          const difference = this.#differs(answers[place]!, this.#singles[i]!);
          if (difference !== undefined) return `sample ${i} with two instances at work: ${difference}`;
        }
      }
      return undefined;
    } finally {
      if (before < 2) await model.updateInstances(before);
    }
  }

  /** A model may refuse an extreme, but answers others afterwards. */
  async extremes(): Promise<Found> {
    for (const { name, dataType } of this.#config.input) {
      const datatype = fromConfigDataType(dataType)!;
      const tensor = this.#samples[0]!.get(name);
      if (tensor === undefined) continue;
      for (const [what, extreme] of extremesOf(datatype, tensor.shape)) {
        const failed = await this.#call(joined([new Map(this.#samples[0]!).set(name, extreme)])).then(
          () => undefined,
          (error: unknown) => TritonError.from(error),
        );
        if (failed?.reason === "WORKER_CRASHED") return `input '${name}' with ${what}: ${failed.message}`;
        const found = await this.#stillAnswers(`input '${name}' with ${what}`);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  }

  async emptyBatch(): Promise<Found> {
    if (this.#config.maxBatchSize === 0) return new Skipped("the model has no batch axis");
    const empty = new Map(
      [...this.#samples[0]!].map(([name, tensor]) => [name, noRows(tensor.datatype, tensor.shape)]),
    );
    const answer = await this.#call(empty).catch((error: unknown) => TritonError.from(error));
    if (TritonError.is(answer)) {
      if (answer.code !== "INVALID_ARG")
        return `a batch without rows: expected INVALID_ARG or no rows, got ${answer.message}`;
    } else {
      for (const [name, { shape }] of answer[0] ?? []) {
        if (shape[0] !== 0) return `a batch without rows: output '${name}' has ${shape[0]} rows`;
      }
    }
    return this.#stillAnswers("a batch without rows");
  }

  /** Memory counts as growing if it grows in both halves of the runs. */
  async memory(): Promise<Found> {
    const { runs = 1_000 } = this.options;
    const isInline = this.#isInline();
    const { bytesPerRun = isInline ? 256 : 16_384 } = this.options;
    const sample = joined([this.#samples[0]!]);
    const half = Math.max(1, Math.floor(runs / 2));
    const runHalf = async () => {
      for (let i = 0; i < half; i++) await this.#raw(sample);
      return usedBytes(isInline);
    };
    // The first runs compile code and fill pools.
    for (let i = 0; i < Math.min(200, half); i++) await this.#raw(sample);
    const start = usedBytes(isInline);
    const middle = await runHalf();
    const end = await runHalf();
    const growth = Math.min(middle - start, end - middle);
    // Memory also changes for other reasons, by as much in few runs as in many.
    if (growth <= bytesPerRun * Math.max(half, 500)) return undefined;
    return `memory grows by ${Math.round(growth / half)} bytes with each run, over ${2 * half} runs`;
  }

  #isInline(): boolean {
    const instances = (this.model.instances?.() ?? []) as readonly { readonly isolation?: string }[];
    return instances.length > 0 && instances.every(({ isolation }) => isolation === "inline");
  }

  async #stillAnswers(what: string): Promise<string | undefined> {
    const answer = await this.#single(this.#samples[1]!).catch((error: unknown) => TritonError.from(error));
    if (TritonError.is(answer)) return `after ${what} the model fails: ${answer.message}`;
    const difference = this.#differs(answer, this.#singles[1]!);
    return difference === undefined ? undefined : `after ${what} another sample differs: ${difference}`;
  }

  #largestBatch(): number | Skipped {
    const { maxBatchSize } = this.#config;
    if (maxBatchSize === 0) return new Skipped("the model has no batch axis");
    if (maxBatchSize === 1) return new Skipped("the model takes one row at a time");
    if (isDecoupled(this.#config))
      return new Skipped("the requests of a decoupled model are not compared by rows");
    return this.#count;
  }

  /** Sends samples as one batch, and compares its rows with their single answers. */
  async #compareBatch(order: readonly number[], text: string): Promise<Found> {
    const answer = await this.#call(joined(order.map((i) => this.#samples[i]!)));
    for (const [name, { shape }] of answer[0]!) {
      if (shape[0] !== order.length)
        return `output '${name}' of ${order.length} samples has ${shape[0]} rows`;
    }
    for (const [row, i] of order.entries()) {
      const difference = this.#differs(rowsOf(answer, row), this.#singles[i]!);
      if (difference !== undefined) return `sample ${i} ${text}: ${difference}`;
    }
    return undefined;
  }

  #differs(actual: Answer, expected: Answer): string | undefined {
    if (actual.length !== expected.length)
      return `expected ${expected.length} responses, got ${actual.length}`;
    for (const [i, outputs] of expected.entries()) {
      for (const [name, tensor] of outputs) {
        const got = actual[i]!.get(name);
        const difference = got === undefined ? "missing" : tensorDifference(got, tensor, this.#tolerance);
        if (difference !== undefined) return `output '${name}': ${difference}`;
      }
    }
    return undefined;
  }

  /** One sample, without the batch axis. */
  #sample(index: number, length: number): Tensors {
    const { sample } = this.options;
    const values = sample?.(index, () => this.#random.next());
    return new Map(
      this.#config.input.flatMap(({ name, dataType, dims, optional }) => {
        const datatype = fromConfigDataType(dataType)!;
        if (values === undefined)
          return [[name, randomTensor(datatype, dims, length, this.#random)] as const];
        if (values[name] === undefined && optional) return [];
        const what = `input '${name}' of sample ${index}`;
        return [
          [name, tensorFromValue(values[name], { what, datatype, shape: dims, takesScalar: true })] as const,
        ];
      }),
    );
  }

  /** Makes values that are far from those of a sample. */
  #stranger({ dataType }: ModelInput): (tensor: Tensor) => Tensor {
    const isFloat = /^TYPE_(FP|BF)/.test(dataType);
    return ({ datatype, shape, elements }) =>
      isFloat && (datatype === "FP32" || datatype === "FP64")
        ? Tensor.fromElements(
            datatype,
            shape,
            (elements as Float32Array).map((value) => 100 * value + 50),
          )
        : randomTensor(datatype, shape, 1, this.#random);
  }

  async #single(sample: Tensors): Promise<Answer> {
    return this.#call(joined([sample]));
  }

  async #call(inputs: Tensors): Promise<Answer> {
    return (await this.#raw(inputs)).map((outputs) => tensorsOf(outputs, "copied"));
  }

  /** Sends rows, which have no batch axis if the model has none. */
  async #raw(rows: Tensors): Promise<object[]> {
    const { model } = this;
    const hasRows = this.#config.maxBatchSize > 0;
    const inputs = Object.fromEntries(
      [...rows].map(([name, tensor]) => [name, hasRows ? tensor : tensor.reshaped(tensor.shape.slice(1))]),
    ) as never;
    const options: InferOptions =
      this.#config.sequenceBatching === undefined
        ? {}
        : { sequence: { id: ++this.#sequences, start: true, end: true } };
    if (!isDecoupled(this.#config)) return [await model.infer(inputs, options)];
    if (model.stream === undefined) {
      throw errorFor(
        "DECOUPLED_MODEL",
        `model '${model.name}' is decoupled, and its responses cannot be read here`,
      );
    }
    const responses: object[] = [];
    for await (const outputs of model.stream(inputs, options)) responses.push(outputs);
    return responses;
  }
}

type Found = string | undefined | Skipped;
type Check = (this: ModelCheck, check: ModelCheck) => Promise<Found>;

const CHECKS: Readonly<Record<CheckName, Check>> = {
  repeatability: (check) => check.repeatability(),
  batch: (check) => check.batch(),
  order: (check) => check.order(),
  company: (check) => check.company(),
  padding: (check) => check.padding(),
  results: (check) => check.results(),
  instances: (check) => check.instances(),
  extremes: (check) => check.extremes(),
  "empty-batch": (check) => check.emptyBatch(),
  memory: (check) => check.memory(),
};

const range = (count: number) => Array.from({ length: count }, (_, i) => i);

/** Samples as the rows of one batch. */
function joined(samples: readonly Tensors[]): Tensors {
  return new Map(
    [...samples[0]!.keys()].map((name) => [
      name,
      concatRows(
        samples.map((sample) => {
          const tensor = sample.get(name)!;
          return tensor.reshaped([1, ...tensor.shape]);
        }),
      ),
    ]),
  );
}

function rowsOf(answer: Answer, row: number): Answer {
  return answer.map(
    (outputs) => new Map([...outputs].map(([name, tensor]) => [name, sliceRows(tensor, row, 1)])),
  );
}

/** The outputs of a result as tensors, over its memory or over copies of it. */
function tensorsOf(outputs: object, memory: "copied" | "viewed"): Tensors {
  return new Map(
    Object.entries(outputs).map(([name, array]) => {
      if (array instanceof Tensor) return [name, array];
      if (!isNdArray(array)) throw errorFor("INVALID_OUTPUT", `output '${name}': expected an ndarray`);
      const { shape } = array;
      const datatype = arrayDatatype(array)!;
      const tensor = tensorFromValue(array, { what: `output '${name}'`, datatype, shape });
      return [
        name,
        memory === "viewed" ? tensor : Tensor.fromElements(datatype, shape, tensor.copyElements()),
      ];
    }),
  );
}

function noRows(datatype: DataType, shape: readonly number[]): Tensor {
  const empty = [0, ...shape];
  return datatype === "BYTES"
    ? Tensor.fromElements(datatype, empty, [])
    : Tensor.fromBytes(datatype, empty, new Uint8Array());
}

let collectGarbage: (() => void) | undefined;

/** Bytes in use after a garbage collection: those of this thread's heap, or of the whole process. */
function usedBytes(ofThread: boolean): number {
  if (collectGarbage === undefined) {
    setFlagsFromString("--expose-gc");
    collectGarbage = runInNewContext("gc") as () => void;
  }
  collectGarbage();
  const { heapUsed, arrayBuffers, rss } = process.memoryUsage();
  return ofThread ? heapUsed + arrayBuffers : rss;
}
