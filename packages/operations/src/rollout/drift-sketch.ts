import { elementByteSize, floatReader, Tensor } from "@tritonjs/protocol";
import { neededEvidence } from "./sequential-tests.js";

/*
 * Drift of inputs. One element of each request is looked at, chosen at random, so that the values are independent
 * whatever the requests contain. Looking costs some hundred nanoseconds, and a sketch keeps a few hundred numbers.
 */

/** Values of the inputs at one time: numbers of values by cell. */
export interface SavedSketch {
  /** Upper bounds of cells, ascending; or the values themselves, if there are few different ones. */
  readonly edges: readonly number[];
  /** True if the cells are single values, and one cell for all others. */
  readonly discrete: boolean;
  /** Numbers of values by cell. The last cell is for values that are not numbers. */
  readonly counts: readonly number[];
}

/** The difference of a window of inputs from the reference. */
export interface DriftMeasure {
  /** Population stability index: 0 for none, above 0.25 for a large difference. */
  readonly psi: number;
  /** Largest difference of the two distribution functions, from 0 to 1. */
  readonly ks: number;
}

/** Most different values of an input whose cells are single values. */
const FEW_VALUES = 30;
/** Cells of an input with many values. */
const CELLS = 60;
/** Cells that are joined to one bin for the index. */
const CELLS_OF_BIN = 6;

/** A distribution of values over cells. */
class Sketch {
  readonly counts: Float64Array;
  total = 0;

  constructor(
    readonly edges: readonly number[],
    readonly discrete: boolean,
    counts?: readonly number[],
  ) {
    this.counts = Float64Array.from(counts ?? new Array<number>(edges.length + 2).fill(0));
    for (const count of this.counts) this.total += count;
  }

  /** Makes the cells of a sketch from values, and counts the values. */
  static of(values: readonly number[]): Sketch {
    const numbers = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
    const different = [...new Set(numbers)];
    const discrete = different.length <= FEW_VALUES;
    const quantile = (i: number) => numbers[Math.floor((i * numbers.length) / CELLS)]!;
    const edges = discrete
      ? different
      : [...new Set(Array.from({ length: CELLS - 1 }, (_, i) => quantile(i + 1)))];
    const sketch = new Sketch(edges, discrete);
    for (const value of values) sketch.add(value);
    return sketch;
  }

  add(value: number): void {
    this.counts[this.#cellOf(value)]!++;
    this.total++;
  }

  /** Replaces the counts by the sums of those of several parts. */
  sum(parts: readonly Sketch[]): void {
    this.counts.fill(0);
    this.total = 0;
    for (const { counts, total } of parts) {
      for (let cell = 0; cell < counts.length; cell++) this.counts[cell]! += counts[cell]!;
      this.total += total;
    }
  }

  #cellOf(value: number): number {
    const { edges } = this;
    if (Number.isNaN(value)) return edges.length + 1;
    let low = 0;
    let high = edges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (value <= edges[middle]!) high = middle;
      else low = middle + 1;
    }
    return this.discrete && edges[low] !== value ? edges.length : low;
  }

  save(): SavedSketch {
    return { edges: this.edges, discrete: this.discrete, counts: [...this.counts] };
  }
}

function binsOf({ counts, discrete }: Sketch): number[] {
  if (discrete) return [...counts];
  const bins: number[] = [];
  for (let cell = 0; cell < counts.length - 1; cell++) {
    const bin = Math.floor(cell / CELLS_OF_BIN);
    bins[bin] = (bins[bin] ?? 0) + counts[cell]!;
  }
  return [...bins, counts.at(-1)!];
}

function measure(reference: Sketch, window: Sketch): DriftMeasure & { readonly bins: number } {
  const [before, now] = [binsOf(reference), binsOf(window)];
  // A bin that neither has is left out. Half a value is added to the others, because a logarithm of 0 is infinite.
  const used = before.map((count, i) => count + now[i]! > 0);
  const bins = used.filter(Boolean).length;
  let psi = 0;
  before.forEach((count, i) => {
    if (!used[i]) return;
    const p = (count + 0.5) / (reference.total + 0.5 * bins);
    const q = (now[i]! + 0.5) / (window.total + 0.5 * bins);
    psi += (q - p) * Math.log(q / p);
  });
  let [sumBefore, sumNow, ks] = [0, 0, 0];
  for (let cell = 0; cell < reference.counts.length; cell++) {
    sumBefore += reference.counts[cell]! / reference.total;
    sumNow += window.counts[cell]! / window.total;
    ks = Math.max(ks, Math.abs(sumBefore - sumNow));
  }
  return { psi, ks, bins };
}

/** Parts of a window. A window that moves by one part finds a drift soon after it began. */
const PARTS = 4;

/** Limits beyond which inputs have drifted. */
export interface DriftLimits {
  readonly psi: number;
  readonly ks: number;
  /** Requests of a window. */
  readonly window: number;
  /** Requests of the reference, if it is taken from the first requests. */
  readonly reference: number;
}

/** The drift of one input so far. */
export interface InputDrift extends DriftMeasure {
  /** Windows that were compared. */
  readonly windows: number;
  /** True once a window differed beyond a limit, and by more than chance explains. */
  readonly drifted: boolean;
}

/** Saved state of the drift of an input. */
export interface SavedDrift {
  readonly values?: readonly number[];
  readonly reference?: SavedSketch;
  /** Numbers of values by cell, of the last parts of the window. */
  readonly parts?: readonly (readonly number[])[];
  readonly windows: number;
  readonly last?: DriftMeasure;
  readonly drifted: boolean;
}

/**
 * Compares the values of an input with those of a reference, in a window that moves by a quarter. A window has drifted if one of two
 * measures exceeds its limit, and by more than chance explains:
 *
 * - PSI over its limit, and significant: PSI * nm/(n+m) is asymptotically chi-squared with one degree of freedom less
 *   than bins (Yurdakul and Naranjo, "Statistical properties of the population stability index", 2020).
 * - The Kolmogorov-Smirnov distance over its limit, and over the bound of Dvoretzky, Kiefer, Wolfowitz and Massart.
 *
 * The chance of a false alarm is spread over all windows and inputs, so the sum over an endless time is at most `alpha`.
 */
export class DriftTest {
  #values: number[] | undefined = [];
  #reference: Sketch | undefined;
  /** The last parts of the window; the newest is not complete. */
  #parts: Sketch[] = [];
  #windows = 0;
  #last: DriftMeasure = { psi: 0, ks: 0 };
  #drifted = false;

  /** @param index number of the input, from 1 on */
  constructor(
    private readonly limits: DriftLimits,
    private readonly alpha: number,
    private readonly index: number,
    reference?: SavedSketch,
  ) {
    if (reference !== undefined)
      this.#open(new Sketch(reference.edges, reference.discrete, reference.counts));
  }

  add(value: number): void {
    const reference = this.#reference;
    if (reference === undefined) {
      this.#values!.push(value);
      if (this.#values!.length >= this.limits.reference) this.#open(Sketch.of(this.#values!));
      return;
    }
    const newest = this.#parts.at(-1)!;
    newest.add(value);
    if (newest.total < this.limits.window / PARTS) return;
    if (this.#parts.length === PARTS) {
      this.#compare(reference);
      this.#parts.shift();
    }
    this.#parts.push(emptyLike(reference));
  }

  get state(): InputDrift {
    return { ...this.#last, windows: this.#windows, drifted: this.#drifted };
  }

  /** The reference, for a later rollout; undefined while it is collected. */
  get reference(): SavedSketch | undefined {
    return this.#reference?.save();
  }

  save(): SavedDrift {
    const state = { windows: this.#windows, last: this.#last, drifted: this.#drifted };
    if (this.#reference === undefined) return { values: [...this.#values!], ...state };
    const parts = this.#parts.map(({ counts }) => [...counts]);
    return { reference: this.#reference.save(), parts, ...state };
  }

  restore({ values, reference, parts, windows, last, drifted }: SavedDrift): void {
    this.#windows = windows;
    this.#last = last ?? this.#last;
    this.#drifted = drifted;
    if (reference === undefined) {
      this.#values = [...(values ?? [])];
      return;
    }
    this.#open(new Sketch(reference.edges, reference.discrete, reference.counts));
    if (parts === undefined || parts.length === 0) return;
    this.#parts = parts.map((counts) => new Sketch(reference.edges, reference.discrete, counts));
  }

  #open(reference: Sketch): void {
    this.#values = undefined;
    this.#reference = reference;
    this.#parts = [emptyLike(reference)];
  }

  #compare(reference: Sketch): void {
    const window = emptyLike(reference);
    window.sum(this.#parts);
    const { psi, ks, bins } = measure(reference, window);
    this.#windows++;
    this.#last = { psi, ks };
    const [n, m] = [reference.total, window.total];
    const needed = neededEvidence(this.alpha, this.index) + neededEvidence(1, this.#windows) + Math.LN2;
    const byIndex = psi > this.limits.psi && chiSquaredEvidence((psi * n * m) / (n + m), bins - 1) > needed;
    // The bound of each sample holds with half of the probability.
    const chance = (count: number) => Math.sqrt((needed + 2 * Math.LN2) / (2 * count));
    const byDistance = ks > this.limits.ks && ks > chance(n) + chance(m);
    if (byIndex || byDistance) this.#drifted = true;
  }
}

function emptyLike({ edges, discrete }: Sketch): Sketch {
  return new Sketch(edges, discrete);
}

/**
 * A lower bound of `-log p`, where p is the probability that a chi-squared variable is above `value`. It uses the
 * transformation of Wilson and Hilferty, and the bound exp(-z^2/2) of the normal tail.
 */
function chiSquaredEvidence(value: number, degrees: number): number {
  if (degrees < 1) return 0;
  const variance = 2 / (9 * degrees);
  const z = (Math.cbrt(value / degrees) - (1 - variance)) / Math.sqrt(variance);
  return z <= 0 ? 0 : (z * z) / 2;
}

/**
 * One element of an input as a number: the element itself, or the length of a string in bytes. Undefined for a tensor
 * without elements.
 *
 * @param place number from 0 to 1 that chooses the element
 */
export function elementAt(tensor: Tensor, place: number): number | undefined {
  const { datatype, shape } = tensor;
  let count = 1;
  for (const dim of shape) count *= Number(dim);
  if (!(count > 0)) return undefined;
  if (datatype === "BYTES") return stringLength(tensor);
  const index = Math.min(count - 1, Math.floor(place * count));
  if (tensor.hasElements) return numberOf(tensor, tensor.elements[index] as number | bigint | undefined);
  const { bytes } = tensor;
  const size = elementByteSize(datatype);
  if (bytes.length < (index + 1) * size) return undefined;
  const one = bytes.slice(index * size, (index + 1) * size);
  const { elements } = Tensor.fromBytes(datatype, [1], one);
  return numberOf(tensor, elements[0] as number | bigint);
}

function numberOf({ datatype }: Tensor, element: number | bigint | undefined): number | undefined {
  if (element === undefined) return undefined;
  const read = floatReader(datatype);
  return read === undefined ? Number(element) : read(Number(element));
}

/** Length of the first string: to find others, all strings before them would have to be read. */
function stringLength(tensor: Tensor): number | undefined {
  if (tensor.hasElements) return (tensor.elements[0] as Uint8Array | undefined)?.length;
  const { bytes } = tensor;
  if (bytes.length < 4) return undefined;
  return new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
}
