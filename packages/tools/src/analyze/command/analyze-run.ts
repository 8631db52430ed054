import { mkdir } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { VERSION } from "@tritonjs/core/frontend";
import { CLEAR_LINE } from "../../report/live-progress.js";
import { reportFault, writeReport } from "../../report/write-report.js";
import { Analysis } from "../analysis.js";
import { SearchEnd } from "../analysis-parts.js";
import { Checkpoint } from "../checkpoint.js";
import type { AnalyzeMachine } from "../machine.js";
import { type AnalysisOutcome, isMet, listed, outcomeOf } from "../outcome.js";
import { analysisHtml } from "../report/analysis-html.js";
import { consoleTable } from "../report/console-table.js";
import { analysisJson, inferenceCsv } from "../report/inference-csv.js";
import { markdownSummary } from "../report/markdown-summary.js";
import { bruteSearch } from "../search/brute-search.js";
import { modelSearch } from "../search/model-search.js";
import { quickSearch } from "../search/quick-search.js";
import { defaultSpace, type SearchSpace } from "../search-space.js";
import { AnalyzeProgress } from "./analyze-progress.js";
import type { AnalyzeSettings } from "./analyze-settings.js";

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
export interface AnalyzeParts {
  openMachine(settings: AnalyzeSettings): Promise<AnalyzeMachine>;
  /** Milliseconds of a clock that never goes back. */
  now(): number;
}

/** Exit codes, those of `tritonjs perf` where both have the case. */
export const ANALYZE_EXIT = { ok: 0, notMet: 1, error: 99, interrupted: 130 } as const;

const MOST_INSTANCES = 4;
const LARGEST_BATCH = 128;

/** Runs a search from the machine to the reports. Returns the exit code. */
export async function runSearch(
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
