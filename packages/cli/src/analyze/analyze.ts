import { mkdir } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { VERSION } from "@tritonjs/core/internal";
import { statusText, TritonError } from "@tritonjs/protocol";
import { CommanderError } from "commander";
import { CLEAR_LINE, fitted } from "../report/live-progress.js";
import { duration, reportFault, writeReport } from "../report/write-report.js";
import { Analysis, type AnalysisObserver, Checkpoint, SearchEnd } from "./analysis.js";
import { analysisHtml } from "./analysis-html.js";
import {
  analysisJson,
  candidateText,
  consoleTable,
  inferenceCsv,
  markdownSummary,
  shortNumber,
} from "./analysis-tables.js";
import { type AnalyzeSettings, analyzeOptions, readAnalyzeSettings } from "./analyze-settings.js";
import type { AnalyzeLevel } from "./goal.js";
import type { AnalyzeMachine, CandidateResult } from "./machine.js";
import { modelSearch } from "./model-search.js";
import { ModuleMachine } from "./module-machine.js";
import { type AnalysisOutcome, isMet, listed, outcomeOf, totalsOf } from "./outcome.js";
import { bruteSearch, quickSearch } from "./quick-search.js";
import { RepositoryMachine } from "./repository-machine.js";
import { type Candidate, defaultSpace, type SearchSpace } from "./variant-parameters.js";

/**
 * Runs the command `tritonjs analyze`: finds the configuration of a model that meets a goal, and writes the reports.
 *
 * @param args arguments after the name of the command
 * @returns the exit code: 0 if a configuration meets the constraints, 1 if none does, 130 if it was interrupted, 99 for
 * other faults
 *
 * @example
 * ```ts
 * import { processTerminal } from "@tritonjs/cli";
 * import { analyze } from "@tritonjs/cli/tools";
 *
 * process.exitCode = await analyze(["--model-repository", "models", "-m", "linear"], processTerminal);
 * ```
 */
export async function analyze(args: readonly string[], terminal: AnalyzeTerminal): Promise<number> {
  return analyzeWith(args, terminal, {
    openMachine: ({ source, models, measuring }) =>
      source.kind === "repository"
        ? RepositoryMachine.open(source.path, models, measuring)
        : ModuleMachine.open(source.path, models, measuring),
    now: () => performance.now(),
  });
}

/** `analyze` with other parts. */
export async function analyzeWith(
  args: readonly string[],
  terminal: AnalyzeTerminal,
  parts: AnalyzeParts,
): Promise<number> {
  try {
    const command = analyzeOptions(VERSION)
      .exitOverride()
      .configureOutput({
        writeOut: (text) => terminal.write(text),
        writeErr: (text) => terminal.writeError(text),
      });
    command.parse(args, { from: "user" });
    const settings = readAnalyzeSettings(command.opts(), ["tritonjs analyze", ...args.map(quoted)].join(" "));
    return await runSearch(settings, terminal, parts);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ANALYZE_EXIT.ok : ANALYZE_EXIT.error;
    if (!TritonError.is(error)) throw error;
    terminal.writeError(`error: ${statusText(error)}\n`);
    return ANALYZE_EXIT.error;
  }
}

/** An argument as a shell reads it. */
function quoted(argument: string): string {
  return /^[\w./:=@,+-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}

/** Terminal of the command. */
export interface AnalyzeTerminal {
  write(text: string): void;
  writeError(text: string): void;
  /** Standard error is a terminal, whose line can be written over. @default false */
  readonly isInteractive?: boolean;
  /** Width of the terminal in characters. */
  readonly columns?: number | undefined;
  /**
   * Resolves when the process is asked to stop. The second request ends the process at once.
   *
   * @param secondExitCode exit code after the second request
   */
  stopRequested(secondExitCode?: number): Promise<unknown>;
}

/** What the command opens. Tests replace it. */
interface AnalyzeParts {
  openMachine(settings: AnalyzeSettings): Promise<AnalyzeMachine>;
  /** Milliseconds of a clock that never goes back. */
  now(): number;
}

/** Exit codes, those of `tritonjs perf` where both have the case. */
const ANALYZE_EXIT = { ok: 0, notMet: 1, error: 99, interrupted: 130 } as const;

const MOST_INSTANCES = 4;
const LARGEST_BATCH = 128;

/** Runs a search from the machine to the reports. Returns the exit code. */
async function runSearch(
  settings: AnalyzeSettings,
  terminal: AnalyzeTerminal,
  parts: AnalyzeParts,
): Promise<number> {
  const stop = new AbortController();
  const stopped = terminal.stopRequested(ANALYZE_EXIT.interrupted).then(() => {
    terminal.writeError(
      `${terminal.isInteractive ? CLEAR_LINE : ""}Interrupted: the reports are written after the measurement ` +
        "that runs. A second Ctrl-C ends the command at once.\n",
    );
    stop.abort();
  });
  const machine = await Promise.race([parts.openMachine(settings), stopped]);
  if (machine === undefined) return ANALYZE_EXIT.interrupted;
  try {
    const progress = new AnalyzeProgress(terminal, () => parts.now(), settings.budgetMs);
    const checkpoint = new Checkpoint(settings.exportPath, fingerprintOf(settings, machine));
    const analysis = new Analysis({
      machine,
      goal: settings.goal,
      load: settings.load,
      signal: stop.signal,
      observer: progress,
      checkpoint,
      earlier: settings.resume ? await checkpoint.read() : [],
      now: () => parts.now(),
      isOverBudget: () => progress.isOverBudget(),
    });
    progress.attach(analysis);
    const mode = searchModeFor(settings, machine, terminal);
    const endedBy = await searchUntilEnd(analysis, mode, settings, stop.signal);
    const outcome = outcomeOf(analysis, {
      search: mode,
      elapsedMs: progress.elapsedMs,
      ...(endedBy !== undefined && { endedBy }),
      toolVersion: VERSION,
      command: settings.command,
    });
    return await report(outcome, settings, machine, terminal, checkpoint);
  } finally {
    await machine.close();
  }
}

/** The simulation knows one model with a batcher; other models are searched by real runs. */
function searchModeFor(
  { search, models }: AnalyzeSettings,
  machine: AnalyzeMachine,
  terminal: AnalyzeTerminal,
): AnalyzeSettings["search"] {
  if (search !== "model") return search;
  const configs = Object.entries(machine.configs);
  const [only] = configs;
  const isOne = configs.length === 1 && models.length === 1 && only![0] === models[0];
  if (isOne && only![1].sequenceBatching === undefined) return search;
  const kind = models.length > 1 ? "several models" : isOne ? "sequences" : "an ensemble";
  terminal.writeError(`--search model does not simulate ${kind}: searching with --search quick.\n`);
  return "quick";
}

/** Returns why the search ended early, if it did. */
async function searchUntilEnd(
  analysis: Analysis,
  mode: AnalyzeSettings["search"],
  settings: AnalyzeSettings,
  signal: AbortSignal,
): Promise<"interrupted" | "budget" | undefined> {
  const space = spaceOf(analysis.machine, settings, mode === "model");
  try {
    if (mode === "brute") {
      const { endsListsEarly, space: given } = settings;
      await bruteSearch(analysis, space, {
        endsLoadsEarly: endsListsEarly,
        endsSizesEarly: endsListsEarly || given.maxBatchSize === undefined,
      });
    } else if (mode === "quick") await quickSearch(analysis, space);
    else {
      const [model] = Object.keys(analysis.machine.configs);
      await modelSearch(analysis, model!, space[model!]!, { verify: settings.verify });
    }
    return undefined;
  } catch (error) {
    if (error instanceof SearchEnd) return error.reason;
    // An interrupted simulation ends with the reason of the signal.
    if (signal.aborted) return "interrupted";
    throw error;
  }
}

function spaceOf(
  { configs, fixed = [] }: AnalyzeMachine,
  { space, goal }: AnalyzeSettings,
  isSimulated: boolean,
): SearchSpace {
  const cores = availableParallelism();
  const latencyBudgetMs = goal.constraints.perf_latency_p99?.max;
  return Object.fromEntries(
    Object.entries(configs).map(([model, config]) => [
      model,
      {
        ...defaultSpace(config, {
          maxInstances: Math.min(MOST_INSTANCES, cores),
          maxBatchSize: LARGEST_BATCH,
          ...(latencyBudgetMs !== undefined && { latencyBudgetMs }),
          cores,
          isSimulated,
          fixed,
        }),
        ...space,
      },
    ]),
  );
}

/** Measurements with the same text may be used together. The goal and the space may differ. */
function fingerprintOf({ source, load, measuring }: AnalyzeSettings, machine: AnalyzeMachine): string {
  const { configs, loaded } = machine;
  return JSON.stringify({ ...source, path: resolve(source.path), loaded, configs, load, measuring });
}

async function report(
  outcome: AnalysisOutcome,
  settings: AnalyzeSettings,
  machine: AnalyzeMachine,
  terminal: AnalyzeTerminal,
  checkpoint: Checkpoint,
): Promise<number> {
  terminal.write(consoleTable(outcome, settings.top));
  const faults = await writeAll(outcome, settings, machine);
  for (const fault of faults) terminal.writeError(`error: ${fault}\n`);
  if (outcome.endedBy === "interrupted") {
    if (checkpoint.fault === undefined)
      terminal.writeError(`Continue with --resume: ${checkpoint.path} has the measurements.\n`);
    return ANALYZE_EXIT.interrupted;
  }
  if (faults.length > 0 || checkpoint.fault !== undefined) return ANALYZE_EXIT.error;
  return isMet(outcome) ? ANALYZE_EXIT.ok : ANALYZE_EXIT.notMet;
}

async function writeAll(
  outcome: AnalysisOutcome,
  { exportPath, outputPath, top }: AnalyzeSettings,
  machine: AnalyzeMachine,
): Promise<string[]> {
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

/** Where progress is written. */
interface AnalyzeOutput {
  writeError(text: string): void;
  readonly isInteractive?: boolean;
  readonly columns?: number | undefined;
}

/** Shows each measurement, and how long the rest of the search will take. */
class AnalyzeProgress implements AnalysisObserver {
  readonly #output: AnalyzeOutput;
  readonly #now: () => number;
  readonly #budgetMs: number | undefined;
  readonly #startMs: number;
  #beganMs: number | undefined;
  #spentMs = 0;
  #count = 0;
  #longestTurnMs = 0;
  #analysis: Analysis | undefined;

  constructor(output: AnalyzeOutput, now: () => number, budgetMs: number | undefined) {
    this.#output = output;
    this.#now = now;
    this.#budgetMs = budgetMs;
    this.#startMs = now();
  }

  attach(analysis: Analysis): void {
    this.#analysis = analysis;
  }

  get elapsedMs(): number {
    return this.#now() - this.#startMs;
  }

  /** Whether the next turn of a measurement may end after the budget. */
  isOverBudget(): boolean {
    return this.#budgetMs !== undefined && this.elapsedMs + this.#longestTurnMs > this.#budgetMs;
  }

  onPhase(text: string): void {
    this.#line(text);
  }

  onCheckpointFault(text: string): void {
    this.#line(`error: ${text}; the search goes on`);
  }

  onBegin(candidate: Candidate, levels: readonly AnalyzeLevel[]): void {
    this.#beganMs = this.#now();
    if (!this.#output.isInteractive) return;
    const load = levels.map(({ value }) => shortNumber(value)).join(", ");
    const text = `${candidateText({ candidate })} at load ${load}${this.#left()}`;
    this.#output.writeError(CLEAR_LINE + fitted(text, this.#output.columns));
  }

  onTurn(share: number): void {
    const turnMs = this.#beganMs === undefined ? 0 : this.#now() - this.#beganMs;
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
    const byBudget = this.#budgetMs === undefined ? byCount : Math.max(0, this.#budgetMs - this.elapsedMs);
    return ` (about ${duration(Math.min(byCount, byBudget))} left)`;
  }

  #line(text: string): void {
    this.#output.writeError(`${this.#output.isInteractive ? CLEAR_LINE : ""}${text}\n`);
  }
}
