import { createHash } from "node:crypto";
import { createReadStream, mkdtempSync, rmSync } from "node:fs";
import { copyFile, link, mkdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import {
  type FixedShapes,
  type ImportOptions,
  importModel,
  ModelRunner,
  OnnxModel,
  prepareModel,
  Reference,
  replaceFile,
  VARIANTS,
  type VariantName,
  type VariantOptions,
} from "@tritonjs/backends/optimize";
import { Checkpoint } from "../analyze/analysis.js";
import type { Candidate, CandidateResult } from "../analyze/candidate.js";
import { candidateKey, variantConfig } from "../analyze/candidate.js";
import { runInTurns, type Turn, withRound } from "../analyze/run-candidate.js";
import type { RealMeasuring } from "../analyze/served-machines.js";
import { cleanUpAtExit } from "../command/exit-cleanups.js";
import { invalidOption } from "../command/tool-errors.js";
import {
  chooseVariant,
  leadingRuns,
  type OptimizeGoal,
  runOf,
  type VariantChoice,
  type VariantEntry,
  type VariantLimits,
  type VariantReport,
} from "./choose-variant.js";
import { canBatch, inputFile, type SampleOptions, type SampleSet, samplesOf } from "./optimize-samples.js";
import { checkServedModel, writeServedModel } from "./served-repository.js";
import { addToRepository, loadKey, type VariantLoad, VariantMachine } from "./variant-machine.js";
import { VariantWorkshop, type WrittenVariant } from "./variant-workshop.js";

/** Options of {@link optimize}. */
export interface OptimizeOptions
  extends SampleOptions,
    VariantLimits,
    Omit<ImportOptions, "shapes">,
    Omit<VariantOptions, "samples" | "signal"> {
  /** The model's file, or that of another framework, which becomes an ONNX file first. */
  readonly model: string;
  /** Name of the served model. @default the name of the file */
  readonly name?: string;
  /** Folder of the reports and the checkpoint. @default "optimize-results" */
  readonly exportPath?: string;
  /** Repository that gets the chosen form. @default `models` in the export path */
  readonly repository?: string;
  /** @default "rate" */
  readonly goal?: OptimizeGoal;
  /** Forms that are made. @default all */
  readonly variants?: readonly VariantName[];
  /** Sizes of dimensions and inputs that the written model has for good. @default none */
  readonly fixed?: FixedShapes;
  /** Rows of the requests that are measured. @default [1, 8], or [1] for a model without an open first dimension */
  readonly batchSizes?: readonly number[];
  /** Requests in flight that are measured. @default [1, 4], or [1] for the goal `latency` */
  readonly concurrency?: readonly number[];
  /** Threads of a session that are measured; 0 for the default. @default [0] */
  readonly threads?: readonly number[];
  /** Milliseconds of a window; a measurement has three. @default 500 */
  readonly intervalMs?: number;
  /** Also tries ONNX Runtime's own form of the forms that are within the limits, for this processor. @default false */
  readonly ownForm?: boolean;
  /** Also tries each form without ONNX Runtime's memory arena: less memory, and often slower. @default false */
  readonly lowMemory?: boolean;
  /** Names of the classes, or a file with one in each line: the labels of the served model. */
  readonly classNames?: string | readonly string[];
  /** Continues with the measurements of the last run. @default false */
  readonly resume?: boolean;
  /** Ends the run after the step that runs. */
  readonly signal?: AbortSignal;
  /** Called with a line of text for each step. */
  readonly onProgress?: (text: string) => void;
}

/** Result of {@link optimize}. */
export interface OptimizeResult {
  readonly model: string;
  readonly name: string;
  readonly goal: OptimizeGoal;
  readonly limits: VariantLimits;
  /** The original first, then the forms in the order in which they were made. */
  readonly variants: readonly VariantReport[];
  /** Absent if none is within the limits, and if the run was interrupted. */
  readonly choice?: VariantChoice;
  /** Folder of the served model; absent without a choice. */
  readonly folder?: string;
  readonly samples: { readonly count: number; readonly isGenerated: boolean; readonly hasLabels: boolean };
  readonly elapsedMs: number;
  readonly isInterrupted: boolean;
  /** The checkpoint that another run can continue with. */
  readonly checkpoint: string;
}

/**
 * Makes forms of a trained model, checks each against the original, measures those that are within the limits under
 * load, and writes the best as a model that a server loads.
 *
 * @throws TritonError INVALID_ARG for a file that is not a model, and for samples and labels that do not fit;
 * UNSUPPORTED for operators that ONNX Runtime does not have; UNAVAILABLE for files that cannot be written
 *
 * @example
 * ```ts
 * import { optimize } from "@tritonjs/perf";
 *
 * const { choice, folder } = await optimize({ model: "digits.onnx", goal: "rate", exportPath: "results" });
 * console.log(choice?.variant.name, choice?.reason, folder);
 * ```
 */
export async function optimize(options: OptimizeOptions): Promise<OptimizeResult> {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-optimize-"));
  const forget = cleanUpAtExit(() => rmSync(folder, { recursive: true, force: true }));
  try {
    const file = await importModel(options.model, folder, options);
    const run = await OptimizeRun.open(file, folder, options);
    return await run.end();
  } finally {
    await rm(folder, { recursive: true, force: true });
    forget();
  }
}

class OptimizeRun {
  readonly #begin = performance.now();
  readonly #goal: OptimizeGoal;
  readonly #signal: AbortSignal;
  readonly #exportPath: string;

  private constructor(
    private readonly file: string,
    private readonly folder: string,
    private readonly options: OptimizeOptions,
    private readonly prepared: OnnxModel,
    private readonly reference: Reference,
    private readonly set: SampleSet,
    private readonly isBatched: boolean,
  ) {
    this.#goal = options.goal ?? "rate";
    this.#signal = options.signal ?? new AbortController().signal;
    this.#exportPath = options.exportPath ?? "optimize-results";
  }

  static async open(file: string, folder: string, options: OptimizeOptions): Promise<OptimizeRun> {
    const model = await OnnxModel.read(file);
    const prepared = await prepareModel(model, options.fixed);
    const runner = await ModelRunner.open(file);
    try {
      const isBatched = canBatch(runner) && options.fixed === undefined;
      const set = await samplesOf(model, runner, options);
      const reference = await Reference.of(runner, set.samples, set.labels);
      return new OptimizeRun(file, folder, options, prepared, reference, set, isBatched);
    } finally {
      await runner.close();
    }
  }

  async end(): Promise<OptimizeResult> {
    const written = await this.#make();
    const checkpoint = new Checkpoint(this.#exportPath, await this.#fingerprint());
    const machine = new VariantMachine(join(this.folder, "repository"), (rows) => this.#measuring(rows));
    try {
      const measured = await this.#measure(written, machine, checkpoint);
      const choice = this.#signal.aborted ? undefined : chooseVariant(measured, this.#goal, this.options);
      const folder = choice && (await this.#serve(choice, written, machine));
      return {
        model: this.options.model,
        name: this.#name,
        goal: this.#goal,
        limits: limitsOf(this.options),
        variants: measured,
        ...(choice !== undefined && { choice }),
        ...(folder !== undefined && { folder }),
        samples: {
          count: this.set.samples.length,
          isGenerated: this.set.isGenerated,
          hasLabels: this.set.labels !== undefined,
        },
        elapsedMs: performance.now() - this.#begin,
        isInterrupted: this.#signal.aborted,
        checkpoint: checkpoint.path,
      };
    } finally {
      await machine.close();
    }
  }

  get #name(): string {
    return this.options.name ?? basename(this.options.model).replace(/\.[^.]*$/, "");
  }

  /** All forms with their errors; those that cannot be made or break a limit have a fault. */
  async #make(): Promise<WrittenVariant[]> {
    const { variants = VARIANTS, ownForm = false, lowMemory = false } = this.options;
    const { samples } = this.set;
    const workshop = new VariantWorkshop(this.folder, this.prepared, this.reference, this.options, {
      ...this.options,
      samples,
      signal: this.#signal,
    });
    const size = (await stat(this.file)).size + (await this.#externalBytes());
    const written: WrittenVariant[] = [];
    try {
      written.push(await workshop.existing("original", "the file as it is", this.file, size));
      for (const name of variants) {
        this.#signal.throwIfAborted();
        this.#say(`making ${name}`);
        for (const variant of await workshop.make(name, this.#signal)) {
          written.push(variant);
          const { report } = variant;
          if (report.fault !== undefined) this.#say(`${report.name}: ${report.fault}`);
        }
      }
      if (ownForm) for (const variant of ableOf(written)) written.push(await workshop.ownForm(variant));
    } catch (error) {
      // The report has the forms that were checked before the interruption.
      if (error !== this.#signal.reason) throw error;
    }
    if (lowMemory) written.push(...ableOf(written).map((variant) => workshop.lowMemory(variant)));
    return written;
  }

  async #externalBytes(): Promise<number> {
    const folder = dirname(resolve(this.file));
    let sum = 0;
    for (const location of (await OnnxModel.read(this.file)).externalFiles()) {
      sum += (await stat(join(folder, location))).size;
    }
    return sum;
  }

  /** Measures all forms without a fault in turns, so that a change of the machine's speed meets all of them. */
  async #measure(
    written: readonly WrittenVariant[],
    machine: VariantMachine,
    checkpoint: Checkpoint,
  ): Promise<VariantReport[]> {
    const able = ableOf(written);
    const sizes = this.#batchSizes;
    const largest = Math.max(...sizes);
    await mkdir(join(this.folder, "repository"), { recursive: true });
    await this.#writeInputs();
    for (const variant of able) {
      const limit = this.isBatched ? largest : 0;
      await addToRepository(join(this.folder, "repository"), variant, limit, linkModelFile);
    }
    const results: CandidateResult[] = this.options.resume ? [...(await checkpoint.read())] : [];
    const known = new Set(results.map(({ candidate }) => candidateKey(candidate)));
    for (const batchSize of sizes) {
      for (const { report } of able) {
        if (!this.#signal.aborted) await machine.add({ variant: report.name, batchSize });
      }
      for (const threads of this.options.threads ?? [0]) {
        if (this.#signal.aborted) break;
        this.#say(
          `measuring ${able.length} forms with ${batchSize} rows a request${threads > 0 ? `, ${threads} threads` : ""}`,
        );
        const candidates = able.map(({ report }) =>
          candidateOf({ variant: report.name, batchSize }, threads),
        );
        const open = candidates.filter((candidate) => !known.has(candidateKey(candidate)));
        const levels = this.#concurrency.map(levelOf);
        await this.#runTurns(
          machine,
          open.map((candidate) => ({ candidate, levels })),
          results,
        );
        await checkpoint.write(results);
        if (checkpoint.fault !== undefined) this.#say(`error: ${checkpoint.fault}; the run goes on`);
      }
    }
    const reports = () => written.map(({ report }) => withRuns(report, results));
    await this.#measureAgain(leadingRuns(reports(), this.#goal, this.options), machine, results);
    await checkpoint.write(results);
    return reports();
  }

  /**
   * Measures the best loads again, in turns of their own. Each was one of many, so the first of them may only have been
   * lucky.
   */
  async #measureAgain(
    leaders: readonly VariantEntry[],
    machine: VariantMachine,
    results: CandidateResult[],
  ): Promise<void> {
    if (leaders.length < 2 || this.#signal.aborted) return;
    this.#say(`measuring the best ${leaders.length} again`);
    const turns = leaders.map(({ variant, run }) => ({
      candidate: candidateOf({ variant: variant.name, batchSize: run!.batchSize }, run!.threads),
      levels: [levelOf(run!.concurrency)],
    }));
    for (let round = 0; round < FINAL_ROUNDS && !this.#signal.aborted; round++) {
      const again: CandidateResult[] = [];
      await this.#runTurns(machine, turns, again);
      for (const { candidate, runs } of again) {
        const place = results.findIndex((one) => candidateKey(one.candidate) === candidateKey(candidate));
        results[place] = withRound(results[place]!, runs);
      }
    }
  }

  async #runTurns(
    machine: VariantMachine,
    turns: readonly Turn[],
    results: CandidateResult[],
  ): Promise<void> {
    const signal = this.#signal;
    await runInTurns(
      {
        machine,
        signal,
        now: () => performance.now(),
        isOver: () => signal.aborted,
        onBegin: () => {},
        onTurn: () => {},
        onEnd: async ({ turn, runs, fault, isPartial }) => {
          if (isPartial) return;
          results.push({ candidate: turn.candidate, runs, ...(fault !== undefined && { fault }) });
        },
      },
      turns,
    );
  }

  get #concurrency(): readonly number[] {
    return this.options.concurrency ?? (this.#goal === "latency" ? [1] : [1, 4]);
  }

  async #serve(
    { variant, run }: VariantChoice,
    written: readonly WrittenVariant[],
    machine: VariantMachine,
  ): Promise<string> {
    const { file } = written.find(({ report }) => report.name === variant.name)!;
    const configs = machine.configs;
    const key = loadKey({ variant: variant.name, batchSize: run?.batchSize ?? this.#batchSizes[0]! });
    const config = variantConfig(
      configs[key]!,
      run !== undefined && run.threads > 0 ? { threads: run.threads } : {},
    );
    const { repository = join(this.#exportPath, "models") } = this.options;
    const names = await this.#classNames();
    const output = this.reference.classOutput;
    const folder = await writeServedModel(repository, {
      name: this.#name,
      file: file!,
      config,
      samples: this.set.samples,
      isBatched: this.isBatched,
      ...(names !== undefined && output !== undefined && { classes: { names, output } }),
    });
    this.#say(`loading ${folder}`);
    await checkServedModel(repository, this.#name, this.#measuring(1));
    return folder;
  }

  async #classNames(): Promise<readonly string[] | undefined> {
    const { classNames } = this.options;
    if (typeof classNames !== "string") return classNames;
    const text = await readFile(classNames, "utf8").catch((cause: Error) => {
      throw invalidOption(
        `--class-names: expected a file, cannot read '${classNames}': ${cause.message}`,
        cause,
      );
    });
    return text.trimEnd().split(/\r?\n/);
  }

  get #batchSizes(): readonly number[] {
    const { batchSizes } = this.options;
    if (this.isBatched) return batchSizes ?? [1, 8];
    if (batchSizes === undefined || batchSizes.every((size) => size === 1)) return [1];
    throw invalidOption(
      `batch sizes: expected 1, because the first dimension of the model is not open, got ${batchSizes.join(",")}`,
    );
  }

  #writeInputs(): Promise<number> {
    return replaceFile(this.#inputs, [inputFile(this.set.samples, this.isBatched)]);
  }

  get #inputs(): string {
    return join(this.folder, "inputs.json");
  }

  #measuring(batchSize: number): RealMeasuring {
    const { intervalMs = 500, seed = 0 } = this.options;
    return {
      options: {
        batchSize,
        mode: "time_windows",
        intervalMs,
        windowRequestCount: 0,
        warmupRequestCount: 10,
        maxTrials: 3,
        stability: { percentage: 10 },
      },
      data: { inputData: [this.#inputs], batchSize, seed },
      seed,
      takesCpu: true,
    };
  }

  /** Measurements with the same text may be used together: those of the same file, samples and load. */
  async #fingerprint(): Promise<string> {
    const hash = createHash("sha256");
    for await (const piece of createReadStream(this.file)) hash.update(piece as Buffer);
    for (const sample of this.set.samples) for (const { bytes } of sample.values()) hash.update(bytes);
    const { intervalMs, concurrency, keep, fixed, blockSize, method, percentile, reduceRange } = this.options;
    const load = { intervalMs, concurrency, keep, fixed, blockSize, method, percentile, reduceRange };
    return JSON.stringify({
      model: hash.digest("hex"),
      ...load,
      takesCpu: true,
      goal: this.#goal === "latency",
    });
  }

  #say(text: string): void {
    this.options.onProgress?.(text);
  }
}

/** The forms that can be served: those without a fault. */
const ableOf = (written: readonly WrittenVariant[]) =>
  written.filter(({ report, file }) => report.fault === undefined && file !== undefined);

/** Times that the best loads are measured again. */
const FINAL_ROUNDS = 3;

const candidateOf = (load: VariantLoad, threads: number): Candidate => ({
  [loadKey(load)]: threads > 0 ? { threads } : {},
});

const levelOf = (value: number) => ({ mode: "concurrency", value }) as const;

/** A link to a model's file under the name that repositories have, with its files of external data. */
async function linkModelFile(from: string, to: string): Promise<void> {
  const put = (source: string, target: string) => link(source, target).catch(() => copyFile(source, target));
  const model = await OnnxModel.read(from);
  const folder = dirname(resolve(from));
  for (const location of model.externalFiles()) {
    const target = join(dirname(to), location);
    await mkdir(dirname(target), { recursive: true });
    await put(join(folder, location), target);
  }
  await put(resolve(from), to);
}

function withRuns(report: VariantReport, results: readonly CandidateResult[]): VariantReport {
  const own = results.filter(
    ({ candidate }) => Object.keys(candidate)[0]!.replace(/@\d+$/, "") === report.name,
  );
  const runs = own.flatMap(({ candidate, runs: levels }) => {
    const [[key, { threads = 0 }]] = Object.entries(candidate) as [[string, Candidate[string]]];
    return levels.map((level) => runOf(level, Number(key.slice(key.lastIndexOf("@") + 1)), threads));
  });
  const [fault] = own.flatMap((one) => one.fault ?? []);
  return { ...report, runs, ...(fault !== undefined && report.fault === undefined && { fault }) };
}

function limitsOf({
  accuracyFloor = 0.5,
  maxError = 0.1,
  latencyBudgetMs,
  maxBytes,
  maxMemoryMb,
}: VariantLimits): VariantLimits {
  return {
    accuracyFloor,
    maxError,
    ...(latencyBudgetMs !== undefined && { latencyBudgetMs }),
    ...(maxBytes !== undefined && { maxBytes }),
    ...(maxMemoryMb !== undefined && { maxMemoryMb }),
  };
}
