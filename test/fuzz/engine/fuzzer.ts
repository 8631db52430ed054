import { BlockCoverage } from "./coverage.js";
import { type Finding, keyOf, textOf } from "./finding.js";
import { InputSource } from "./input-source.js";
import { MemoryWatch } from "./memory-watch.js";
import { minimise } from "./minimise.js";
import type { FuzzTarget } from "./target.js";

/** The clock as it is before a target makes it run faster. */
const now = performance.now.bind(performance);

/** Settings of a run. */
export interface FuzzOptions {
  readonly seed: number;
  readonly runs: number;
  /** Time limit in milliseconds; none unless given. */
  readonly timeMs?: number;
  /** Guides the inputs by coverage; true unless given. */
  readonly coverage?: boolean;
  /** Largest share of the time that coverage may take, once every good input has run; 0.25 unless given. */
  readonly coverageShare?: number;
  /** Gets the inputs that are about to run. */
  readonly onBatch?: (inputs: readonly Uint8Array[]) => void;
  readonly onFinding?: (finding: Finding) => void;
  readonly onProgress?: (progress: FuzzReport) => void;
}

/** What a run did. */
export interface FuzzReport {
  readonly runs: number;
  /** Numbers of inputs by how they ended. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Functions that ran, and inputs that reached new code. */
  readonly functions: number;
  readonly kept: number;
  readonly findings: number;
  readonly usedBytes: number;
  readonly rssBytes: number;
  readonly growthBytes: number;
}

const SMALLEST_BATCH = 16;
const LARGEST_BATCH = 512;
/** Milliseconds of processor time after which an input counts as slow, and of wall time after which it is measured. */
const SLOW_MS = 1000;
const SUSPICIOUS_MS = 300;
/** Readings of memory in a run. */
const READINGS = 20;
/** Most findings of a run. */
const MAX_FINDINGS = 40;

/** Sends random inputs to a target, and keeps those that reach new code as a base of further ones. */
export class Fuzzer {
  readonly #target: FuzzTarget;
  readonly #options: FuzzOptions;
  readonly #source: InputSource;
  readonly #coverage: BlockCoverage | undefined;
  readonly #memory = new MemoryWatch();
  readonly #outcomes = new Map<string, number>();
  readonly #known = new Set<string>();
  /** Errors that nobody handled, since the last look. */
  readonly #unhandled: unknown[] = [];
  #runs = 0;
  /** Milliseconds of the run, and those that coverage took. */
  #startMs = 0;
  #coverageMs = 0;

  constructor(target: FuzzTarget, options: FuzzOptions) {
    this.#target = target;
    this.#options = options;
    this.#source = new InputSource(target, options.seed);
    this.#coverage = options.coverage === false ? undefined : new BlockCoverage();
  }

  async run(): Promise<FuzzReport> {
    const { runs, timeMs = Number.POSITIVE_INFINITY } = this.#options;
    const note = (error: unknown) => void this.#unhandled.push(error);
    process.on("unhandledRejection", note);
    process.on("uncaughtException", note);
    try {
      const end = now() + timeMs;
      let size = SMALLEST_BATCH;
      let nextReading = 0;
      await this.#runSeeds();
      this.#startMs = now();
      while (this.#runs < runs && now() < end) {
        const inputs = Array.from({ length: Math.min(size, runs - this.#runs) }, () => this.#source.next());
        const isNew = await this.#runBatch(inputs);
        size = isNew ? Math.max(SMALLEST_BATCH, size >> 1) : Math.min(LARGEST_BATCH, size << 1);
        if (this.#runs < nextReading) continue;
        nextReading += runs / READINGS;
        await this.#look();
      }
      await this.#look();
      if (!this.#memory.returns) {
        const text = `memory grew by ${this.#memory.growthBytes} bytes`;
        this.#report({ input: new Uint8Array(), text });
      }
      return this.report;
    } finally {
      process.off("unhandledRejection", note);
      process.off("uncaughtException", note);
      this.#coverage?.close();
    }
  }

  get report(): FuzzReport {
    const { usedBytes = 0, rssBytes = 0 } = this.#memory.last ?? {};
    return {
      runs: this.#runs,
      outcomes: Object.fromEntries([...this.#outcomes].sort(([, a], [, b]) => b - a)),
      functions: this.#coverage?.functions ?? 0,
      kept: this.#source.kept,
      findings: this.#known.size,
      usedBytes,
      rssBytes,
      growthBytes: this.#memory.growthBytes,
    };
  }

  async #runSeeds(): Promise<void> {
    const { seeds } = this.#target;
    this.#options.onBatch?.(seeds);
    for (const seed of seeds) {
      await this.#runOne(seed);
      if (this.#coverage !== undefined) this.#coverage.add(this.#coverage.take());
    }
  }

  /** Whether a good input is still answered right, and memory returns. */
  async #look(): Promise<void> {
    try {
      await this.#target.check?.();
    } catch (error) {
      this.#report({ input: new Uint8Array(), text: `a good input fails: ${textOf(error)}` });
    }
    this.#memory.read(this.#runs, this.#source.keptBytes);
    this.#options.onProgress?.(this.report);
  }

  /** Runs the inputs, and tells whether they reached new code. */
  async #runBatch(inputs: readonly Uint8Array[]): Promise<boolean> {
    this.#options.onBatch?.(inputs);
    const { coverageShare = 0.25 } = this.#options;
    const isGuided = this.#coverageMs <= coverageShare * (now() - this.#startMs);
    const coverage = isGuided ? this.#coverage : undefined;
    this.#spend(() => coverage?.take());
    await this.#runLanes(inputs);
    this.#runs += inputs.length;
    if (this.#unhandled.length > 0) await this.#attribute(inputs);
    if (coverage === undefined) return false;
    const report = this.#spend(() => coverage.take());
    if (!coverage.isNew(report)) return false;
    const start = now();
    for (const half of halves(inputs)) await this.#findNew(half);
    this.#coverageMs += now() - start;
    // Code that ran by the state that earlier inputs left may not run again.
    coverage.add(report);
    return true;
  }

  /** Counts the time of work for the coverage. */
  #spend<T>(work: () => T): T {
    const start = now();
    try {
      return work();
    } finally {
      this.#coverageMs += now() - start;
    }
  }

  async #runLanes(inputs: readonly Uint8Array[]): Promise<void> {
    const { lanes = 1 } = this.#target;
    const left = inputs.values();
    const lane = async () => {
      for (const input of left) await this.#runOne(input);
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    if (lanes === 1) await new Promise(setImmediate);
  }

  /** Finds and keeps the inputs of a list that reach new code, by halving the list. */
  async #findNew(inputs: readonly Uint8Array[]): Promise<void> {
    const coverage = this.#coverage!;
    await this.#runLanes(inputs);
    const report = coverage.take();
    if (!coverage.isNew(report)) return;
    if (inputs.length === 1) {
      coverage.add(report);
      this.#source.keep(inputs[0]!);
      return;
    }
    for (const half of halves(inputs)) await this.#findNew(half);
  }

  async #runOne(input: Uint8Array): Promise<void> {
    const start = now();
    try {
      const outcome = this.#target.run(input);
      const name = typeof outcome === "string" ? outcome : await outcome;
      this.#outcomes.set(name, (this.#outcomes.get(name) ?? 0) + 1);
    } catch (error) {
      await this.#found(input, error);
      return;
    }
    if (now() - start < SUSPICIOUS_MS || (this.#target.lanes ?? 1) > 1) return;
    const before = process.cpuUsage();
    await this.#endOf(input);
    const { user, system } = process.cpuUsage(before);
    const ms = (user + system) / 1000;
    if (ms > SLOW_MS) this.#report({ input, text: `takes ${Math.round(ms)} ms of processor time` });
  }

  /** Text of the fault of an input; undefined for none. */
  async #endOf(input: Uint8Array): Promise<string | undefined> {
    try {
      await this.#target.run(input);
      return undefined;
    } catch (error) {
      return textOf(error);
    }
  }

  async #found(input: Uint8Array, error: unknown): Promise<void> {
    const text = textOf(error);
    const key = keyOf(text);
    if (this.#known.has(key) || this.#known.size >= MAX_FINDINGS) return;
    this.#known.add(key);
    const fails = async (one: Uint8Array) => keyOf((await this.#endOf(one)) ?? "") === key;
    const smallest = await minimise(input, fails);
    this.#options.onFinding?.({ input: smallest, text });
  }

  /** Finds the input of a list after which an error was not handled. */
  async #attribute(inputs: readonly Uint8Array[]): Promise<void> {
    const [error] = this.#unhandled.splice(0);
    const text = `not handled: ${textOf(error)}`;
    for (const input of inputs) {
      await this.#endOf(input);
      for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
      if (this.#unhandled.splice(0).length > 0) {
        this.#report({ input, text });
        return;
      }
    }
    this.#report({ input: inputs[0]!, text: `${text} (after one of ${inputs.length} inputs)` });
  }

  #report(finding: Finding): void {
    const key = keyOf(finding.text);
    if (this.#known.has(key)) return;
    this.#known.add(key);
    this.#options.onFinding?.(finding);
  }
}

function halves<T>(list: readonly T[]): (readonly T[])[] {
  const middle = list.length >> 1;
  return [list.slice(0, middle), list.slice(middle)].filter(({ length }) => length > 0);
}
