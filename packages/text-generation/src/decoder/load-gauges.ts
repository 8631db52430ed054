import type { ChangeGauge } from "@tritonjs/core/backend";
import type { EngineLoad } from "./engine-load.js";

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
