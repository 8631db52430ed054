import { errorFor, type Tensor } from "@tritonjs/protocol";
import { layerName } from "../onnx-graph/layer-choice.js";
import { ELEMENT } from "../onnx-graph/onnx-messages.js";
import type { OnnxModel } from "../onnx-graph/onnx-model.js";
import { valueTypes } from "../onnx-graph/value-types.js";
import { floatsOf, openWithValues } from "./calibrate.js";
import type { ModelRunner, Sample } from "./model-runner.js";

/** How far one output of a variant is from that of the original. */
interface OutputError {
  readonly name: string;
  /** Largest difference of two elements; NaN for an output that is not numeric. */
  readonly largest: number;
  /** Mean difference of two elements. */
  readonly mean: number;
  /** Root of the mean square of the differences, as a share of that of the original's elements. */
  readonly relative: number;
  /** Share of rows with the same result: the position of the largest element of reals, all elements of other types. */
  readonly agreement: number;
  readonly isReal: boolean;
}

/** A variant against the original on the same samples. */
export interface VariantComparison {
  readonly outputs: readonly OutputError[];
  readonly samples: number;
  /** Share of rows whose class is the label; absent without labels. */
  readonly accuracy?: number;
}

/** Right answers: the class of each row, over all samples in their order. */
export interface Labels {
  readonly classes: readonly number[];
  /** Output that has the class, or a score for each. @default the first with scores, else the first with integers */
  readonly output?: string;
}

/** Outputs of the original, to which variants are compared. */
export class Reference {
  private constructor(
    readonly samples: readonly Sample[],
    private readonly results: readonly ReadonlyMap<string, Tensor>[],
    private readonly labels: Labels | undefined,
  ) {}

  /**
   * Runs the original on all samples.
   *
   * @throws TritonError INVALID_ARG without samples, for samples that the model refuses, and for labels that do not fit
   */
  static async of(original: ModelRunner, samples: readonly Sample[], labels?: Labels): Promise<Reference> {
    if (samples.length === 0) throw errorFor("INVALID_INPUT", "samples: expected at least one, got none");
    const results = [];
    for (const sample of samples) results.push(await original.run(sample));
    const chosen = labels && { ...labels, output: labels.output ?? classOutput(results[0]!) };
    const reference = new Reference(samples, results, chosen);
    if (chosen !== undefined) reference.#checkLabels(chosen);
    return reference;
  }

  /** Outputs of the original for each sample. */
  get outputs(): readonly ReadonlyMap<string, Tensor>[] {
    return this.results;
  }

  /** The output that has the class of a row, or a score for each class; undefined if no output looks like that. */
  get classOutput(): string | undefined {
    return this.labels?.output ?? classOutput(this.results[0]!);
  }

  /** Compares the original with itself, which gives its accuracy. */
  own(): VariantComparison {
    return this.#compare(this.results);
  }

  /** @throws what the variant throws */
  async compare(variant: ModelRunner, signal?: AbortSignal): Promise<VariantComparison> {
    const results = [];
    for (const sample of this.samples) {
      signal?.throwIfAborted();
      results.push(await variant.run(sample));
    }
    return this.#compare(results);
  }

  #compare(results: readonly ReadonlyMap<string, Tensor>[]): VariantComparison {
    const sums = new Map([...this.results[0]!.keys()].map((name) => [name, new ErrorSum(name)]));
    for (const [i, result] of results.entries()) {
      for (const [name, sum] of sums) sum.add(this.results[i]!.get(name)!, result.get(name));
    }
    const accuracy = this.labels && this.#accuracy(this.labels, results);
    return {
      outputs: [...sums.values()].map((sum) => sum.end()),
      samples: results.length,
      ...(accuracy !== undefined && { accuracy }),
    };
  }

  #accuracy({ classes, output }: Labels, results: readonly ReadonlyMap<string, Tensor>[]): number {
    const found = results.flatMap((result) => classesOf(result.get(output!)!));
    return found.filter((one, i) => one === classes[i]).length / classes.length;
  }

  #checkLabels({ classes, output }: Labels): void {
    const tensors = this.results.map((result) => result.get(output ?? ""));
    if (tensors.some((tensor) => tensor === undefined)) {
      const known = [...this.results[0]!.keys()].join(", ");
      throw errorFor("INVALID_INPUT", `output of the labels: expected one of ${known}, got '${output}'`);
    }
    const rows = tensors.reduce((sum, tensor) => sum + classesOf(tensor!).length, 0);
    if (rows === classes.length) return;
    throw errorFor(
      "INVALID_INPUT",
      `labels: expected ${rows}, one for each row of the samples, got ${classes.length}`,
    );
  }
}

function classOutput(results: ReadonlyMap<string, Tensor>): string | undefined {
  const all = [...results];
  const scores = all.find(([, tensor]) => floatsOf(tensor) !== undefined && (tensor.shape.at(-1) ?? 0) > 1);
  return (scores ?? all.find(([, tensor]) => floatsOf(tensor) === undefined))?.[0];
}

/** The class of each row: the position of the largest score, or the integer itself. */
function classesOf(tensor: Tensor): number[] {
  const scores = floatsOf(tensor);
  if (scores === undefined) return Array.from(tensor.elements as ArrayLike<unknown>, Number);
  return largestPositions(scores, tensor.shape.at(-1) ?? 1);
}

function largestPositions(values: ArrayLike<number>, width: number): number[] {
  const positions: number[] = [];
  for (let start = 0; start < values.length; start += width) {
    let position = 0;
    for (let i = 1; i < width; i++) if (values[start + i]! > values[start + position]!) position = i;
    positions.push(position);
  }
  return positions;
}

/** Largest number of FP16. */
const LARGEST_HALF = 65504;

/** Differences of one value over all samples. */
class ErrorSum {
  #largest = 0;
  #sum = 0;
  #squares = 0;
  #signal = 0;
  #count = 0;
  #rows = 0;
  #same = 0;
  #isReal = true;
  #differs = false;

  constructor(readonly name: string) {}

  add(original: Tensor, variant: Tensor | undefined): void {
    const [a, b] = [floatsOf(original), variant && floatsOf(variant)];
    if (variant === undefined || String(original.shape) !== String(variant.shape)) {
      // Another shape is another answer: an output that depends on data, such as the boxes of a detector.
      this.#differs = true;
      this.#rows++;
      return;
    }
    if (a === undefined || b === undefined) {
      this.#isReal = false;
      this.#addExact(original, variant);
      return;
    }
    for (let i = 0; i < a.length; i++) {
      if (Object.is(a[i], b[i]) || a[i] === b[i]) {
        if (Number.isFinite(a[i])) this.#signal += a[i]! * a[i]!;
        continue;
      }
      // What masks add, an infinity or a huge number, is the largest number of a smaller type.
      if (Math.abs(a[i]!) > LARGEST_HALF && Math.abs(b[i]!) >= LARGEST_HALF && a[i]! > 0 === b[i]! > 0)
        continue;
      const difference = Number.isNaN(a[i]! - b[i]!) ? Number.POSITIVE_INFINITY : Math.abs(a[i]! - b[i]!);
      if (difference > this.#largest) this.#largest = difference;
      this.#sum += difference;
      this.#squares += difference * difference;
      if (Number.isFinite(a[i])) this.#signal += a[i]! * a[i]!;
    }
    this.#count += a.length;
    const width = original.shape.at(-1) ?? 1;
    const [positionsA, positionsB] = [largestPositions(a, width), largestPositions(b, width)];
    this.#rows += positionsA.length;
    this.#same += positionsA.filter((position, i) => position === positionsB[i]).length;
  }

  #addExact(original: Tensor, variant: Tensor): void {
    const [a, b] = [original.elements as ArrayLike<unknown>, variant.elements as ArrayLike<unknown>];
    for (let i = 0; i < a.length; i++) {
      const isBytes = a[i] instanceof Uint8Array;
      const isSame = isBytes ? Buffer.compare(a[i] as Uint8Array, b[i] as Uint8Array) === 0 : a[i] === b[i];
      const difference = isBytes ? Number.NaN : Math.abs(Number(a[i]) - Number(b[i]));
      if (!(difference <= this.#largest)) this.#largest = difference;
      this.#sum += difference;
      this.#rows++;
      if (isSame) this.#same++;
    }
    this.#count += a.length;
  }

  end(): OutputError {
    const relative =
      this.#signal > 0 ? Math.sqrt(this.#squares / this.#signal) : this.#squares > 0 ? Infinity : 0;
    return {
      name: this.name,
      largest: this.#differs ? Number.POSITIVE_INFINITY : this.#largest,
      mean: this.#count === 0 ? 0 : this.#sum / this.#count,
      relative: this.#differs ? Number.POSITIVE_INFINITY : relative,
      agreement: this.#rows === 0 ? 1 : this.#same / this.#rows,
      isReal: this.#isReal,
    };
  }
}

/** The error of one layer of a variant. */
export interface LayerError {
  readonly layer: string;
  readonly operator: string;
  /** Relative error of its output, with that of the layers before it. */
  readonly relative: number;
  /** Relative error that the layer added itself: the part that its inputs do not have. */
  readonly added: number;
}

/**
 * Compares the values inside of two forms of a model, layer by layer. Values have the same names in both, where a
 * variant has them at all.
 *
 * @returns the layers by the error that they add, largest first
 */
export async function compareLayers(
  original: OnnxModel,
  variant: OnnxModel,
  samples: readonly Sample[],
): Promise<LayerError[]> {
  const { graph } = original.message;
  const types = valueTypes(graph);
  const made = new Set(variant.message.graph.node.flatMap(({ output }) => output));
  const names = graph.node
    .flatMap(({ output }) => output)
    .filter((name) => types.get(name) === ELEMENT.FLOAT && made.has(name));
  const errors = await valueErrors(original, variant, names, samples);
  const layers: LayerError[] = [];
  for (const node of graph.node) {
    const relative = errors.get(node.output[0] ?? "");
    if (relative === undefined) continue;
    const before = Math.hypot(...node.input.map((name) => errors.get(name) ?? 0));
    const added = Number.isFinite(relative) ? Math.sqrt(Math.max(0, relative ** 2 - before ** 2)) : relative;
    layers.push({ layer: layerName(node), operator: node.opType, relative, added });
  }
  return layers.sort((a, b) => b.added - a.added);
}

async function valueErrors(
  original: OnnxModel,
  variant: OnnxModel,
  names: readonly string[],
  samples: readonly Sample[],
): Promise<Map<string, number>> {
  const runners = [await openWithValues(original, names)];
  try {
    runners.push(await openWithValues(variant, names));
    const sums = new Map(names.map((name) => [name, new ErrorSum(name)]));
    for (const sample of samples) {
      const [a, b] = [await runners[0]!.run(sample, names), await runners[1]!.run(sample, names)];
      for (const [name, sum] of sums) sum.add(a.get(name)!, b.get(name));
    }
    return new Map([...sums].map(([name, sum]) => [name, sum.end().relative]));
  } finally {
    for (const runner of runners) await runner.close();
  }
}
