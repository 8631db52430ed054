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
  /** All pieces in their order. */
  readonly timeline: WindowSummary[] = [];
  readonly #session: MeasureSession;
  readonly #level: LoadLevel;
  readonly #keepAll: boolean;
  readonly #sequences = new Set<number>();
  #open: RequestFigures;
  #count = 0;
  #kept: Kept[] = [];
  #counters: CounterSnapshot | undefined;

  /** @param keepAll keeps the figures of all windows in one sum, instead of the last three */
  constructor(session: MeasureSession, level: LoadLevel, keepAll: boolean) {
    this.#session = session;
    this.#level = level;
    this.#keepAll = keepAll;
    this.#open = new RequestFigures(session.options);
  }

  /** Number of windows. */
  get count(): number {
    return this.#count;
  }

  /** The window that is open has pieces. */
  get isOpen(): boolean {
    return this.#open.durationMs > 0;
  }

  /** Figures of the windows that count, oldest first. */
  get figures(): RequestFigures[] {
    return this.#kept.map(({ figures }) => figures);
  }

  /** Looks at the server before the first window. */
  async begin(): Promise<void> {
    this.#counters = await this.#look();
  }

  /** Adds a piece of the window that is open. */
  async add(piece: LoadWindow): Promise<void> {
    const { options, observer } = this.#session;
    await observer.onRecords?.(this.#level, piece);
    const figures = new RequestFigures(options);
    figures.addWindow(piece, this.#sequences);
    this.#open.add(figures);
    const moment = summaryOf(figures, undefined);
    this.timeline.push(moment);
    observer.onMoment?.(this.#level, moment);
  }

  /** Ends the window that is open. */
  async cut(): Promise<RequestFigures> {
    const { options, observer } = this.#session;
    const figures = this.#open;
    this.#open = new RequestFigures(options);
    const before = this.#counters;
    this.#counters = await this.#look();
    const summary = summaryOf(figures, this.#difference(before));
    this.#count++;
    this.#keep({ figures, before });
    observer.onWindow?.(this.#level, summary, this.#count);
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
