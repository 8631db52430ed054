import { mkdir } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { VERSION } from "@tritonjs/core/internal";
import {
  CLEAR_LINE,
  commandLineText,
  EXIT,
  runCommand,
  stopSignal,
  type ToolTerminal,
} from "../command/tool-command.js";
import { duration, fitted, reportFault, writeReport } from "../report/write-report.js";
import { Analysis, type AnalysisObserver, Checkpoint, SearchEnd } from "./analysis.js";
import {
  analysisHtml,
  analysisJson,
  candidateText,
  consoleTable,
  inferenceCsv,
  markdownSummary,
  shortNumber,
} from "./analysis-reports.js";
import { type AnalyzeSettings, analyzeOptions, readAnalyzeSettings } from "./analyze-settings.js";
import {
  type AnalyzeLevel,
  type AnalyzeMachine,
  type Candidate,
  type CandidateResult,
  defaultSpace,
  type ModelSpace,
  type SearchSpace,
} from "./candidate.js";
import { modelSearch } from "./model-search.js";
import { type AnalysisOutcome, isMet, listed, outcomeOf, totalsOf } from "./outcome.js";
import { bruteSearch, quickSearch } from "./quick-search.js";
import { ModuleMachine, RepositoryMachine } from "./served-machines.js";

/**
 * Runs the command `tritonjs analyze`: finds the configuration of a model that meets a goal, and writes the reports.
 *
 * @param args arguments after the name of the command
 * @returns the exit code: 0 if a configuration meets the constraints, 1 if none does, 130 if it was interrupted, 99 for
 * other faults
 *
 * @example
 * ```ts
 * import { analyze, processTerminal } from "@tritonjs/perf";
 *
 * process.exitCode = await analyze(["--model-repository", "models", "-m", "linear"], processTerminal);
 * ```
 */
export async function analyze(args: readonly string[], terminal: ToolTerminal): Promise<number> {
  return analyzeWith(args, terminal, openMachine, () => performance.now());
}

type OpenMachine = (settings: AnalyzeSettings) => Promise<AnalyzeMachine>;

const openMachine: OpenMachine = ({ source, models, measuring }) =>
  source.kind === "repository"
    ? RepositoryMachine.open(source.path, models, measuring)
    : ModuleMachine.open(source.path, models, measuring);

export async function analyzeWith(
  args: readonly string[],
  terminal: ToolTerminal,
  open: OpenMachine,
  now: () => number,
): Promise<number> {
  const command = analyzeOptions(VERSION);
  return runCommand(command, args, { terminal, faultCode: EXIT.error }, () => {
    const settings = readAnalyzeSettings(command.opts(), commandLineText("tritonjs analyze", args));
    return new AnalyzeRun(settings, terminal, now).run(open);
  });
}

const MOST_INSTANCES = 4;
const LARGEST_BATCH = 128;

class AnalyzeRun {
  constructor(
    private readonly settings: AnalyzeSettings,
    private readonly terminal: ToolTerminal,
    private readonly now: () => number,
  ) {}

  async run(open: OpenMachine): Promise<number> {
    const { signal, stopped } = stopSignal(
      this.terminal,
      "the reports are written after the measurement that runs",
    );
    const machine = await Promise.race([open(this.settings), stopped]);
    if (machine === undefined) return EXIT.interrupted;
    try {
      return await this.#search(machine, signal);
    } finally {
      await machine.close();
    }
  }

  async #search(machine: AnalyzeMachine, signal: AbortSignal): Promise<number> {
    const { budgetMs, exportPath, resume, command } = this.settings;
    const progress = new AnalyzeProgress(this.terminal, this.now, budgetMs);
    const checkpoint = new Checkpoint(exportPath, fingerprintOf(this.settings, machine));
    const earlier = resume ? await checkpoint.read() : [];
    const analysis = new Analysis(machine, this.settings, signal, progress, checkpoint, earlier);
    progress.attach(analysis);
    const search = this.#modeFor(machine);
    const endedBy = await this.#searchUntilEnd(analysis, search, signal);
    const outcome = outcomeOf(analysis, {
      search,
      elapsedMs: progress.elapsedMs,
      ...(endedBy !== undefined && { endedBy }),
      toolVersion: VERSION,
      command,
    });
    return this.#report(outcome, machine, checkpoint);
  }

  /** The simulation knows one model with a batcher; other models are searched by real runs. */
  #modeFor(machine: AnalyzeMachine): AnalyzeSettings["search"] {
    const { search, models } = this.settings;
    if (search !== "model") return search;
    const configs = Object.entries(machine.configs);
    const [only] = configs;
    const isOne = configs.length === 1 && models.length === 1 && only![0] === models[0];
    if (isOne && only![1].sequenceBatching === undefined) return search;
    const kind = models.length > 1 ? "several models" : isOne ? "sequences" : "an ensemble";
    this.terminal.writeError(`--search model does not simulate ${kind}: searching with --search quick.\n`);
    return "quick";
  }

  async #searchUntilEnd(
    analysis: Analysis,
    mode: AnalyzeSettings["search"],
    signal: AbortSignal,
  ): Promise<"interrupted" | "budget" | undefined> {
    const { endsListsEarly, space: given, verify } = this.settings;
    const space = this.#spaceOf(analysis.machine, mode === "model");
    try {
      if (mode === "brute") {
        await bruteSearch(analysis, space, {
          endsLoadsEarly: endsListsEarly,
          endsSizesEarly: endsListsEarly || given.maxBatchSize === undefined,
        });
      } else if (mode === "quick") await quickSearch(analysis, space);
      else {
        const [model] = Object.keys(analysis.machine.configs);
        await modelSearch(analysis, model!, space[model!]!, { verify });
      }
      return undefined;
    } catch (error) {
      if (error instanceof SearchEnd) return error.reason;
      // An interrupted simulation ends with the reason of the signal.
      if (signal.aborted) return "interrupted";
      throw error;
    }
  }

  #spaceOf(
    { configs, fixed = [], leastBatchSizes = {}, batchSize }: AnalyzeMachine,
    isSimulated: boolean,
  ): SearchSpace {
    const { space, goal } = this.settings;
    const cores = availableParallelism();
    const latencyBudgetMs = goal.constraints.perf_latency_p99?.max;
    const limits = {
      maxInstances: Math.min(MOST_INSTANCES, cores),
      maxBatchSize: LARGEST_BATCH,
      ...(latencyBudgetMs !== undefined && { latencyBudgetMs }),
      cores,
      isSimulated,
      fixed,
    };
    return Object.fromEntries(
      Object.entries(configs).map(([model, config]) => [
        model,
        loadable(
          { ...defaultSpace(config, limits), ...space },
          Math.max(batchSize, leastBatchSizes[model] ?? 0),
        ),
      ]),
    );
  }

  async #report(outcome: AnalysisOutcome, machine: AnalyzeMachine, checkpoint: Checkpoint): Promise<number> {
    this.terminal.write(consoleTable(outcome, this.settings.top));
    const faults = await this.#writeFiles(outcome, machine);
    for (const fault of faults) this.terminal.writeError(`error: ${fault}\n`);
    if (outcome.endedBy === "interrupted") {
      if (checkpoint.fault === undefined)
        this.terminal.writeError(`Continue with --resume: ${checkpoint.path} has the measurements.\n`);
      return EXIT.interrupted;
    }
    if (faults.length > 0 || checkpoint.fault !== undefined) return EXIT.error;
    return isMet(outcome) ? EXIT.ok : EXIT.notMet;
  }

  async #writeFiles(outcome: AnalysisOutcome, machine: AnalyzeMachine): Promise<string[]> {
    const { exportPath, outputPath, top } = this.settings;
    if (outcome.ranked.length === 0) return [];
    const files = {
      "report.html": analysisHtml(outcome),
      "summary.md": markdownSummary(outcome, top),
      "analysis.json": analysisJson(outcome),
      "metrics-model-inference.csv": inferenceCsv(outcome),
    };
    const faults: (string | undefined)[] = [];
    try {
      await mkdir(exportPath, { recursive: true });
      for (const [name, text] of Object.entries(files))
        faults.push(await writeReport(join(exportPath, name), text));
      for (const { result } of listed(outcome, top)) await machine.writeVariants?.(result, outputPath);
    } catch (error) {
      faults.push(reportFault(outputPath, error));
    }
    return faults.filter((fault) => fault !== undefined);
  }
}

/** The space without batches that the requests, or the ensembles of the model, exceed: these cannot be loaded or run. */
function loadable(space: ModelSpace, least: number): ModelSpace {
  const { maxBatchSize, ...others } = space;
  if (maxBatchSize === undefined) return space;
  const sizes = maxBatchSize.filter((size) => size >= least);
  return sizes.length === 0 ? others : { ...space, maxBatchSize: sizes };
}

/** Measurements with the same text may be used together. The goal and the space may differ. */
function fingerprintOf({ source, load, measuring }: AnalyzeSettings, machine: AnalyzeMachine): string {
  const { configs, loaded } = machine;
  return JSON.stringify({ ...source, path: resolve(source.path), loaded, configs, load, measuring });
}

class AnalyzeProgress implements AnalysisObserver {
  readonly #startMs: number;
  #beganMs: number | undefined;
  #spentMs = 0;
  #count = 0;
  #longestTurnMs = 0;
  #analysis: Analysis | undefined;

  constructor(
    private readonly output: ToolTerminal,
    readonly now: () => number,
    private readonly budgetMs: number | undefined,
  ) {
    this.#startMs = now();
  }

  attach(analysis: Analysis): void {
    this.#analysis = analysis;
  }

  get elapsedMs(): number {
    return this.now() - this.#startMs;
  }

  /** Whether the next turn of a measurement may end after the budget. */
  isOverBudget(): boolean {
    return this.budgetMs !== undefined && this.elapsedMs + this.#longestTurnMs > this.budgetMs;
  }

  onPhase(text: string): void {
    this.#line(text);
  }

  onCheckpointFault(text: string): void {
    this.#line(`error: ${text}; the search goes on`);
  }

  onBegin(candidate: Candidate, levels: readonly AnalyzeLevel[]): void {
    this.#beganMs = this.now();
    if (!this.output.isInteractive) return;
    const load = levels.map(({ value }) => shortNumber(value)).join(", ");
    const text = `${candidateText({ candidate })} at load ${load}${this.#left()}`;
    this.output.writeError(CLEAR_LINE + fitted(text, this.output.columns));
  }

  onTurn(share: number): void {
    const turnMs = this.#beganMs === undefined ? 0 : this.now() - this.#beganMs;
    this.#longestTurnMs = Math.max(this.#longestTurnMs, turnMs);
    this.#beganMs = undefined;
    if (share === 0) return;
    this.#spentMs += turnMs;
    this.#count += share;
  }

  onResult(result: CandidateResult): void {
    if (this.#beganMs !== undefined) this.onTurn(1);
    const text = candidateText(result);
    if (result.runs.length === 0) {
      this.#line(`${text}: skipped, ${result.fault ?? "no measurement"}`);
      return;
    }
    const figures = result.runs.map((run) => {
      const { throughput, p99Ms } = totalsOf(run);
      return `${shortNumber(throughput)} infer/s, p99 ${duration(p99Ms)}`;
    });
    this.#line(`${text}: ${figures.join("; ")}${this.#left()}`);
  }

  /** Expected time left, from the mean of the measurements so far and the rest of the budget. */
  #left(): string {
    const expected = this.#analysis?.expected ?? 0;
    if (expected === 0 || this.#count === 0) return "";
    const byCount = (expected * this.#spentMs) / this.#count;
    const byBudget = this.budgetMs === undefined ? byCount : Math.max(0, this.budgetMs - this.elapsedMs);
    return ` (about ${duration(Math.min(byCount, byBudget))} left)`;
  }

  #line(text: string): void {
    this.output.writeError(`${this.output.isInteractive ? CLEAR_LINE : ""}${text}\n`);
  }
}
