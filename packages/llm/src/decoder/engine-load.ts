import type { ChangeGauge } from "@tritonjs/core/backend";

/** How busy an engine is, as it reports to the main thread. */
export interface EngineLoad {
  /** Requests that the engine has taken since it was loaded. */
  readonly taken: number;
  /** Texts that are being generated. */
  readonly running: number;
  /** Texts in the engine that wait for space for keys and values. */
  readonly waiting: number;
  /** Length that one more text may have now; 0 if there is no room for it. */
  readonly room: number;
  /** Tokens of keys and values that are in use, and that fit. */
  readonly usedTokens: number;
  readonly totalTokens: number;
  /** Longest text, prompt included. */
  readonly contextLength: number;
}

/** Decides on the main thread whether the engine may get its next request, which else waits in the model's queue. */
export class Admission {
  #load: EngineLoad | undefined;
  #sent = 0;

  /** @param maxRunning largest number of texts at a time */
  constructor(private readonly maxRunning: number) {}

  /** Records a request that was sent to the engine. */
  sent(): void {
    this.#sent++;
  }

  /** Takes a report of the engine. A new engine starts to count again. */
  take(load: EngineLoad): void {
    if (load.taken === 0) this.#sent = 0;
    this.#load = load;
  }

  /**
   * Number of requests that the engine may have at a time. While the space for keys and values could run out, the
   * engine gets one request after the other: each report shows whether there is room for the next.
   */
  get capacity(): number {
    const load = this.#load;
    if (load === undefined) return this.maxRunning;
    const unknown = this.#sent - load.taken;
    const certain = (load.running + load.waiting + unknown + 1) * load.contextLength <= load.totalTokens;
    if (certain) return this.maxRunning;
    return unknown === 0 && load.waiting === 0 && load.room > 0 ? this.maxRunning : 0;
  }
}

const LABELS = ["model", "version"];

const RUNNING = {
  name: "tritonjs_generation_running",
  help: "Texts that are being generated",
  labelNames: LABELS,
};

const WAITING = {
  name: "tritonjs_generation_waiting",
  help: "Requests for texts that wait, in the model's queue or for space for keys and values",
  labelNames: LABELS,
};

const USAGE = {
  name: "tritonjs_generation_kv_cache_usage",
  help: "Share of the space for keys and values that is in use, 0 to 1; the mean of the instances",
  labelNames: LABELS,
};

const CAPACITY = {
  name: "tritonjs_generation_token_capacity",
  help: "Tokens whose keys and values fit at a time, in all instances",
  labelNames: LABELS,
};

/** The values of one instance. */
interface Shown {
  readonly running: number;
  readonly waiting: number;
  readonly usage: number;
  readonly capacity: number;
}

const NOTHING: Shown = { running: 0, waiting: 0, usage: 0, capacity: 0 };

/** The load of one instance on the metrics page, where the instances of a model add up. */
export class LoadGauges {
  #shown = NOTHING;

  /** @param queuedRequests number of requests in the model's queue, which all instances share */
  constructor(
    private readonly change: ChangeGauge,
    private readonly labels: Readonly<Record<string, string>>,
    private readonly instanceCount: number,
    private readonly queuedRequests: () => number,
  ) {}

  show({ running, waiting, usedTokens, totalTokens }: EngineLoad): void {
    const { instanceCount } = this;
    this.#set({
      running,
      waiting: waiting + this.queuedRequests() / instanceCount,
      usage: usedTokens / totalTokens / instanceCount,
      capacity: totalTokens,
    });
  }

  /** Removes the values of an instance that has ended. */
  clear(): void {
    this.#set(NOTHING);
  }

  #set(next: Shown): void {
    const before = this.#shown;
    this.#shown = next;
    this.change(RUNNING, this.labels, next.running - before.running);
    this.change(WAITING, this.labels, next.waiting - before.waiting);
    this.change(USAGE, this.labels, next.usage - before.usage);
    if (next.capacity !== before.capacity)
      this.change(CAPACITY, this.labels, next.capacity - before.capacity);
  }
}
