import { setTimeout } from "node:timers/promises";
import { VERSION } from "@tritonjs/core/internal";
import { commandLineText, EXIT, runCommand, stopSignal, type ToolTerminal } from "../command/tool-command.js";
import { invalidOption } from "../command/tool-errors.js";
import type { DataSet, TestedModel } from "../data/data-set.js";
import { loadDataSet, loadOpenAiData } from "../data/load-data-set.js";
import { type LoadGenerator, type LoadOptions, startLoadGenerator } from "../load/load-generator.js";
import { checkLevel, type LoadLevel, requestsOfLevel } from "../load/load-level.js";
import type { LoadWindow } from "../load/request-records.js";
import type { LevelResult } from "../measure/level-result.js";
import {
  type LoadPlan,
  type MeasureClock,
  type MeasureObserver,
  type MeasureSession,
  measurePlan,
  processClock,
} from "../measure/measure-level.js";
import type { TokenOptions } from "../measure/request-figures.js";
import { MetricsWatch, ServerWatch } from "../measure/server-watch.js";
import { levelText, settingsText, summaryText } from "../report/console-report.js";
import { htmlReport } from "../report/html-report.js";
import { csvFiles, figuresJson, ProfileExport, payloadInputs } from "../report/report-files.js";
import {
  composingPath,
  LiveProgress,
  type RunDescription,
  reportFault,
  writeReport,
} from "../report/write-report.js";
import { type OpenedTarget, openTarget, serverNotices } from "./open-target.js";
import { perfOptions } from "./perf-options.js";
import {
  type PerfSettings,
  type ReportSettings,
  readSettings,
  settingWarnings,
  type TargetSettings,
} from "./perf-settings.js";
import { bestOf, exitCodeOf, failedAssertions } from "./run-verdict.js";

/**
 * Runs the command `tritonjs perf`: measures a model and writes the reports.
 *
 * @param args arguments after the name of the command
 * @returns the exit code: 0 for a measurement, 1 if a condition of `--assert` does not hold, 2 if a level is not stable,
 * 3 if no request ended within a window, 130 if it was interrupted, 99 for other faults
 *
 * @example
 * ```ts
 * import { perf, processTerminal } from "@tritonjs/perf";
 *
 * process.exitCode = await perf(["-m", "linear", "--concurrency-range", "1:16"], processTerminal);
 * ```
 */
export async function perf(args: readonly string[], terminal: ToolTerminal): Promise<number> {
  return perfWith(args, terminal, realTestbed);
}

export async function perfWith(
  args: readonly string[],
  terminal: ToolTerminal,
  testbed: Testbed,
): Promise<number> {
  const command = perfOptions(VERSION);
  // perf_analyzer has this name of --help too.
  const given = args.map((argument) => (argument === "-?" ? "--help" : argument));
  return runCommand(command, given, { terminal, faultCode: EXIT.error }, () => {
    const settings = readSettings(command.opts(), commandLineText("tritonjs perf", args));
    for (const warning of settingWarnings(settings)) terminal.writeError(`[WARNING] ${warning}\n`);
    return new PerfRun(settings, terminal, testbed).run();
  });
}

class PerfRun {
  readonly #stop: ReturnType<typeof stopSignal>;
  readonly #warnings: string[] = [];
  readonly #faults: string[] = [];
  readonly #shortPeriods = new ShortPeriods();
  readonly #results: LevelResult[] = [];

  constructor(
    private readonly settings: PerfSettings,
    private readonly terminal: ToolTerminal,
    private readonly testbed: Testbed,
  ) {
    this.#stop = stopSignal(terminal, "requests in flight finish");
  }

  async run(): Promise<number> {
    const { stopped } = this.#stop;
    const target = await Promise.race([this.testbed.openTarget(this.settings.target), stopped]);
    if (target === undefined) return EXIT.interrupted;
    try {
      return await this.#measure(target);
    } finally {
      await target.close();
    }
  }

  async #measure(target: OpenedTarget): Promise<number> {
    const { settings, tokens } = { settings: this.settings, tokens: this.#tokensOf(target) };
    const data = await this.testbed.loadData(target, settings);
    const plan = plannedLoad(settings, data, target.model);
    const run = this.#describe(target, plan);
    const keepResponses = tokens !== undefined || settings.reports.profile !== undefined;
    const server = await this.#watchServer(target);
    const metrics = this.#watchMetrics(target);
    const generator = await this.testbed.startGenerator(target, data, { ...settings.load, keepResponses });
    let profile: ProfileExport | undefined;
    try {
      profile = await this.#openProfile(data);
      this.terminal.write(settingsText(run));
      const options = { ...settings.measure, ...(tokens !== undefined && { tokens }) };
      await this.#measureWith(plan, {
        generator,
        clock: this.testbed.clock,
        options,
        ...(server !== undefined && { server }),
        ...(metrics !== undefined && { metrics }),
        observer: this.#observer(run, profile),
        signal: this.#stop.signal,
      });
    } finally {
      await generator.close();
    }
    await this.#finishProfile(profile, run);
    return this.#report(run, plan);
  }

  async #measureWith(plan: LoadPlan, session: MeasureSession): Promise<void> {
    const { generator, server, metrics } = session;
    const intervalMs = this.settings.metrics?.intervalMs;
    const timer = metrics && setInterval(() => void metrics.read(), intervalMs);
    try {
      await measurePlan(session, plan);
    } catch (error) {
      this.#faults.push(error instanceof Error ? error.message : String(error));
    } finally {
      clearInterval(timer);
    }
    // A pause would play a fixed schedule to its end.
    const isSchedule = plan.kind === "single" && plan.level.mode === "fixed_schedule";
    if (!isSchedule)
      await Promise.race([generator.pause().catch(() => {}), setTimeout(DRAIN_MS, undefined, UNREF)]);
    if (metrics?.failure !== undefined) {
      this.#warnings.push(`The metrics page could not be read: ${metrics.failure}`);
    }
    this.#warnings.push(...(server?.warnings ?? []), ...this.#shortPeriods.warnings);
  }

  #watchMetrics({ metricsPage }: OpenedTarget): MetricsWatch | undefined {
    const { target, metrics } = this.settings;
    if (metrics === undefined) return undefined;
    return new MetricsWatch(metricsPage ?? (() => fetchPage(metrics.url)), target.modelName ?? "");
  }

  async #watchServer({ view, model: tested }: OpenedTarget): Promise<ServerWatch | undefined> {
    const { target, calledModels } = this.settings;
    if (view === undefined || target.kind === "openai") return undefined;
    const model = { name: target.modelName, version: target.modelVersion ?? "" };
    try {
      this.#warnings.push(...serverNotices(target, tested, await view.extensions()));
      return await ServerWatch.open(view, model, calledModels);
    } catch (error) {
      this.#warnings.push(`The server's statistics could not be read: ${(error as Error).message}`);
      return undefined;
    }
  }

  #observer(run: RunDescription, profile: ProfileExport | undefined): MeasureObserver {
    const progress = new LiveProgress(this.terminal);
    return {
      onLevelBegin: () => progress.onLevelBegin(),
      onRecords: (level, window) => {
        this.#shortPeriods.add(level, window);
        profile?.add(level, window);
        return profile?.flush();
      },
      onMoment: (level, summary) => progress.onMoment(level, summary),
      onWindow: (level, summary, trial) => progress.onWindow(level, summary, trial),
      onLevel: (result) => {
        progress.onLevel();
        this.#results.push(result);
        this.terminal.write(levelText(result, run, this.settings.reports.verbose));
      },
    };
  }

  async #report(run: RunDescription, plan: LoadPlan): Promise<number> {
    const { reports, assertions } = this.settings;
    const results = this.#results;
    if (results.length > 0) this.terminal.write(summaryText(results, run));
    if (plan.kind === "search") {
      const best = bestOf(results);
      this.terminal.write(
        best === undefined
          ? "No measured level meets the latency limit.\n"
          : `Highest level within the latency limit: ${summaryText([best], run).split("\n")[1]}\n`,
      );
    }
    const failed = failedAssertions(results, plan.kind, assertions);
    this.#faults.push(...(await writeReports(results, run, reports, this.#warnings)));
    for (const warning of this.#warnings) this.terminal.writeError(`[WARNING] ${warning}\n`);
    for (const line of failed) this.terminal.writeError(`[FAILED] ${line}\n`);
    for (const fault of this.#faults) this.terminal.writeError(`error: ${fault}\n`);
    const code = exitCodeOf(results, plan.kind, failed.length > 0);
    return this.#faults.length > 0 && code !== EXIT.noRequests ? EXIT.error : code;
  }

  #describe({ model }: OpenedTarget, plan: LoadPlan): RunDescription {
    const { description } = this.settings;
    const ownCount = plan.kind === "single" ? requestsOfLevel(plan.level) : undefined;
    const requestCount = ownCount ?? description.requestCount;
    const decoupled = model?.decoupled ?? (description.serviceKind === "openai" && description.streaming);
    return { ...description, requestCount, decoupled, isSequenceModel: model?.isSequenceModel ?? false };
  }

  /** Figures of tokens are counted for OpenAI endpoints, for decoupled models, and where limits ask for them. */
  #tokensOf({ model }: OpenedTarget): TokenOptions | undefined {
    const { target, goals } = this.settings;
    const isStream = target.kind === "openai" ? target.streaming === true : model?.decoupled === true;
    const isText = target.kind === "openai" && !target.endpoint?.includes("embeddings");
    return isText || isStream || goals.length > 0 ? { streaming: isStream, goals } : undefined;
  }

  async #openProfile(data: DataSet): Promise<ProfileExport | undefined> {
    const { profile } = this.settings.reports;
    if (profile === undefined) return undefined;
    try {
      return await ProfileExport.create(profile, payloadInputs(data));
    } catch (error) {
      this.#faults.push(reportFault(profile, error));
      return undefined;
    }
  }

  async #finishProfile(profile: ProfileExport | undefined, run: RunDescription): Promise<void> {
    if (profile === undefined) return;
    const endpoint = this.settings.target.kind === "openai" ? (this.settings.target.endpoint ?? "") : run.url;
    try {
      await profile.finish({ version: run.toolVersion, service_kind: run.serviceKind, endpoint });
    } catch (error) {
      this.#faults.push(reportFault(profile.path, error));
    }
  }
}

/** Time for which requests in flight may finish after the last level, and sequences may end. */
const DRAIN_MS = 10_000;
const UNREF = { ref: false } as const;

/** Time after which a metrics page counts as unreachable. */
const PAGE_TIMEOUT_MS = 5000;

async function fetchPage(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(PAGE_TIMEOUT_MS) });
  if (!response.ok) throw new Error(`${url} answered with status ${response.status}`);
  return response.text();
}

/** The clock, the server, the data and the load of a measurement. Tests have simulated ones. */
export interface Testbed {
  readonly clock: MeasureClock;
  openTarget(settings: TargetSettings): Promise<OpenedTarget>;
  loadData(target: OpenedTarget, settings: PerfSettings): Promise<DataSet>;
  startGenerator(target: OpenedTarget, data: DataSet, options: LoadOptions): Promise<LoadGenerator>;
}

const realTestbed: Testbed = {
  clock: processClock,
  openTarget,
  loadData: ({ model }, { data }) =>
    model === undefined
      ? loadOpenAiData(typeof data.inputData === "object" ? data.inputData : [], data)
      : loadDataSet(model, data),
  startGenerator: ({ options }, data, load) => startLoadGenerator(options, data, load),
};

function plannedLoad(settings: PerfSettings, data: DataSet, model: TestedModel | undefined): LoadPlan {
  const plan = settings.plan ?? { kind: "single", level: levelOf(data, settings) };
  if (plan.kind !== "single") return plan;
  checkLevel(plan.level);
  const isPeriodic = plan.level.mode === "periodic_concurrency";
  if (isPeriodic && model !== undefined && (!model.decoupled || model.isSequenceModel))
    throw invalidOption(
      `--periodic-concurrency-range: expected a decoupled model without sequences, '${model.name}' is not`,
    );
  return plan;
}

function levelOf(data: DataSet, { sessionConcurrency: value }: PerfSettings): LoadLevel {
  if (value === undefined) return { mode: "fixed_schedule", timestampsMs: data.timestampsMs ?? [] };
  const sessions = (data.kind === "openai" && data.sessions) || [];
  return { mode: "session_concurrency", value, sessions };
}

/** Counts requests of a periodic load that ended before they had the responses of their period. */
class ShortPeriods {
  #count = 0;
  #period = 0;

  add(level: LoadLevel, { records }: LoadWindow): void {
    if (level.mode !== "periodic_concurrency") return;
    this.#period = level.responses;
    for (let i = 0; i < records.count; i++) if (records.responses[i]! < level.responses) this.#count++;
  }

  get warnings(): string[] {
    if (this.#count === 0) return [];
    return [
      `${this.#count} requests ended with fewer than ${this.#period} responses; their periods ended with them. ` +
        "A smaller --request-period fits the model",
    ];
  }
}

/** Writes the files of the reports. A file that cannot be written keeps no other from being written. */
async function writeReports(
  results: readonly LevelResult[],
  run: RunDescription,
  { csv, verboseCsv, json, html }: ReportSettings,
  warnings: readonly string[],
): Promise<string[]> {
  const files: { readonly path: string; readonly text: string }[] = [];
  if (csv !== undefined) {
    for (const { model, text } of csvFiles(results, run, verboseCsv)) {
      files.push({ path: model === undefined ? csv : composingPath(csv, model), text });
    }
  }
  if (json !== undefined) files.push({ path: json, text: figuresJson(results, run) });
  if (html !== undefined) files.push({ path: html, text: htmlReport(results, run, warnings) });
  const faults = await Promise.all(files.map(({ path, text }) => writeReport(path, text)));
  return faults.flatMap((fault) => fault ?? []);
}
