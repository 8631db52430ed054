import type { LoadLevel } from "../load/load-level.js";
import type { LoadWindow } from "../load/request-records.js";
import type { WindowSummary } from "./level-result.js";
import type { MeasureSession } from "./measure-session.js";
import { mergeFigures, RequestFigures } from "./request-figures.js";
import { type ServerFigures, stageMs } from "./server/server-figures.js";
import type { CounterSnapshot } from "./server/server-watch.js";
import { STABLE_WINDOWS } from "./stability.js";

interface Kept {
  readonly figures: RequestFigures;
  /** Counters at the start of the window. */
  readonly before: CounterSnapshot | undefined;
}

/** Cuts the windows of one level and keeps the figures of those that count. */
export class WindowRecorder {
  readonly summaries: WindowSummary[] = [];
  readonly #session: MeasureSession;
  readonly #level: LoadLevel;
  readonly #keepAll: boolean;
  readonly #sequences = new Set<number>();
  #kept: Kept[] = [];
  #counters: CounterSnapshot | undefined;

  /** @param keepAll keeps the figures of all windows in one sum, instead of the last three */
  constructor(session: MeasureSession, level: LoadLevel, keepAll: boolean) {
    this.#session = session;
    this.#level = level;
    this.#keepAll = keepAll;
  }

  /** Figures of the windows that count, oldest first. */
  get figures(): RequestFigures[] {
    return this.#kept.map(({ figures }) => figures);
  }

  /** Looks at the server before the first window. */
  async begin(): Promise<void> {
    this.#counters = await this.#look();
  }

  /** Ends a window that consists of these pieces. */
  async add(pieces: readonly LoadWindow[]): Promise<RequestFigures> {
    const { options, observer } = this.#session;
    const figures = new RequestFigures(options);
    for (const piece of pieces) {
      observer.onRecords?.(this.#level, piece);
      figures.addWindow(piece, this.#sequences);
    }
    const before = this.#counters;
    this.#counters = await this.#look();
    const server = this.#difference(before);
    const summary = summaryOf(figures, server);
    this.summaries.push(summary);
    this.#keep({ figures, before });
    observer.onWindow?.(this.#level, summary, this.summaries.length);
    return figures;
  }

  /** The figures of all windows that count. */
  merged(): RequestFigures {
    return mergeFigures(this.figures, this.#session.options);
  }

  /** What the server did in the windows that count. */
  serverFigures(): ServerFigures | undefined {
    return this.#difference(this.#kept[0]?.before);
  }

  #keep(window: Kept): void {
    const [first] = this.#kept;
    if (this.#keepAll && first !== undefined) first.figures.add(window.figures);
    else this.#kept.push(window);
    if (this.#kept.length > STABLE_WINDOWS) this.#kept.shift();
  }

  #difference(before: CounterSnapshot | undefined): ServerFigures | undefined {
    const { server } = this.#session;
    if (server === undefined || before === undefined || this.#counters === undefined) return undefined;
    return server.difference(before, this.#counters);
  }

  async #look(): Promise<CounterSnapshot | undefined> {
    const { server } = this.#session;
    try {
      return await server?.look();
    } catch (error) {
      server?.warnings.add(
        `The server's statistics could not be read: ${error instanceof Error ? error.message : String(error)}`,
      );
      return undefined;
    }
  }
}

function summaryOf(figures: RequestFigures, server: ServerFigures | undefined): WindowSummary {
  return {
    start: figures.start,
    end: figures.end,
    throughput: figures.throughput,
    requestCount: figures.requestCount,
    failureCount: figures.failureCount,
    meanMs: figures.latency.mean,
    p50Ms: figures.latency.percentile(50),
    p99Ms: figures.latency.percentile(99),
    ...(server !== undefined && { queueMs: stageMs(server, "queue") }),
  };
}
