import { setTimeout } from "node:timers/promises";
import type { DataSet } from "../data/data-set.js";
import type { LevelResult } from "../measure/level-result.js";
import type { LoadPlan } from "../measure/load-plan.js";
import { measurePlan } from "../measure/measure-plan.js";
import type { MeasureObserver, MeasureSession } from "../measure/measure-session.js";
import { MetricsWatch } from "../measure/server/metrics-watch.js";
import { ServerWatch } from "../measure/server/server-watch.js";
import type { TokenOptions } from "../measure/tokens/token-options.js";
import { levelText, settingsText, summaryText } from "../report/console-report.js";
import { CLEAR_LINE, LiveProgress } from "../report/live-progress.js";
import { ProfileExport } from "../report/profile-export.js";
import type { RunDescription } from "../report/run-description.js";
import { reportFault } from "../report/write-report.js";
import { EXIT } from "./exit-codes.js";
import type { OpenedTarget } from "./opened-target.js";
import { payloadInputs } from "./payload-inputs.js";
import type { PerfParts } from "./perf-parts.js";
import type { PerfSettings } from "./perf-settings.js";
import type { PerfTerminal } from "./perf-terminal.js";
import { plannedLoad, requestsOfPlan } from "./planned-load.js";
import { writeReports } from "./run-reports.js";
import { bestOf, exitCodeOf, failedAssertions } from "./run-verdict.js";
import { serverNotices } from "./server-notices.js";
import { ShortPeriods } from "./short-periods.js";

/** One run of the command, from the target to the reports. */
export class PerfRun {
  readonly #settings: PerfSettings;
  readonly #terminal: PerfTerminal;
  readonly #parts: PerfParts;
  readonly #stop = new AbortController();
  readonly #warnings: string[] = [];
  readonly #faults: string[] = [];
  readonly #shortPeriods = new ShortPeriods();
  readonly #results: LevelResult[] = [];

  constructor(settings: PerfSettings, terminal: PerfTerminal, parts: PerfParts) {
    this.#settings = settings;
    this.#terminal = terminal;
    this.#parts = parts;
  }

  /** @returns the exit code */
  async run(): Promise<number> {
    const stopped = this.#terminal.stopRequested(EXIT.interrupted).then(() => {
      this.#terminal.writeError(
        `${this.#terminal.isInteractive ? CLEAR_LINE : ""}Interrupted: requests in flight finish. ` +
          "A second Ctrl-C ends the command at once.\n",
      );
      this.#stop.abort();
    });
    const target = await Promise.race([this.#parts.openTarget(this.#settings.target), stopped]);
    if (target === undefined) return EXIT.interrupted;
    try {
      return await this.#measure(target);
    } finally {
      await target.close();
    }
  }

  async #measure(target: OpenedTarget): Promise<number> {
    const { settings, tokens } = { settings: this.#settings, tokens: this.#tokensOf(target) };
    const data = await this.#parts.loadData(target, settings);
    const plan = plannedLoad(settings, data, target.model);
    const run = this.#describe(target, plan);
    const keepResponses = tokens !== undefined || settings.reports.profile !== undefined;
    const server = await this.#watchServer(target);
    const metrics = this.#watchMetrics(target);
    const generator = await this.#parts.startGenerator(target, data, { ...settings.load, keepResponses });
    let profile: ProfileExport | undefined;
    try {
      profile = await this.#openProfile(data);
      this.#terminal.write(settingsText(run));
      const options = { ...settings.measure, ...(tokens !== undefined && { tokens }) };
      await this.#measureWith(plan, {
        generator,
        clock: this.#parts.clock,
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
    const intervalMs = this.#settings.metrics?.intervalMs;
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
    const { target, metrics } = this.#settings;
    if (metrics === undefined) return undefined;
    return new MetricsWatch(metricsPage ?? (() => fetchPage(metrics.url)), target.modelName ?? "");
  }

  async #watchServer({ view, model: tested }: OpenedTarget): Promise<ServerWatch | undefined> {
    const { target, calledModels } = this.#settings;
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
    const progress = new LiveProgress(this.#terminal);
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
        this.#terminal.write(levelText(result, run, this.#settings.reports.verbose));
      },
    };
  }

  async #report(run: RunDescription, plan: LoadPlan): Promise<number> {
    const { reports, assertions } = this.#settings;
    const results = this.#results;
    if (results.length > 0) this.#terminal.write(summaryText(results, run));
    if (plan.kind === "search") {
      const best = bestOf(results);
      this.#terminal.write(
        best === undefined
          ? "No measured level meets the latency limit.\n"
          : `Highest level within the latency limit: ${summaryText([best], run).split("\n")[1]}\n`,
      );
    }
    const failed = failedAssertions(results, plan.kind, assertions);
    this.#faults.push(...(await writeReports(results, run, reports, this.#warnings)));
    for (const warning of this.#warnings) this.#terminal.writeError(`[WARNING] ${warning}\n`);
    for (const line of failed) this.#terminal.writeError(`[FAILED] ${line}\n`);
    for (const fault of this.#faults) this.#terminal.writeError(`error: ${fault}\n`);
    const code = exitCodeOf(results, plan.kind, failed.length > 0);
    return this.#faults.length > 0 && code !== EXIT.noRequests ? EXIT.error : code;
  }

  #describe({ model }: OpenedTarget, plan: LoadPlan): RunDescription {
    const { description } = this.#settings;
    const requestCount = requestsOfPlan(plan) ?? description.requestCount;
    const decoupled = model?.decoupled ?? (description.serviceKind === "openai" && description.streaming);
    return { ...description, requestCount, decoupled, isSequenceModel: model?.isSequenceModel ?? false };
  }

  /** Figures of tokens are counted for OpenAI endpoints, for decoupled models, and where limits ask for them. */
  #tokensOf({ model }: OpenedTarget): TokenOptions | undefined {
    const { target, goals } = this.#settings;
    const isStream = target.kind === "openai" ? target.streaming === true : model?.decoupled === true;
    const isText = target.kind === "openai" && !target.endpoint?.includes("embeddings");
    return isText || isStream || goals.length > 0 ? { streaming: isStream, goals } : undefined;
  }

  async #openProfile(data: DataSet): Promise<ProfileExport | undefined> {
    const { profile } = this.#settings.reports;
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
    const endpoint =
      this.#settings.target.kind === "openai" ? (this.#settings.target.endpoint ?? "") : run.url;
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
