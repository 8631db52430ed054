import { errorFor } from "@tritonjs/protocol";
import { availableParallelism } from "#host";
import type { PlannedInstance } from "../config/instance-groups.js";
import type { Log } from "../observe/log.js";
import { type Clock, realClock } from "../system/clock.js";
import {
  demandOf,
  type RateLimitedInstance,
  RateLimiter,
  type RateLimitResource,
  type ResourceDemand,
} from "./rate-limiter.js";

/** A request without a deadline counts as due this long after its arrival, in milliseconds. */
export const PATIENCE_MS = 1000;
/** A batch that exceeds its expected time counts as nearly done: this share of its time is left. */
const OVERRUN_LEFT = 0.02;
/** By how much the yield of a batch must be better, so that it goes before one that is due earlier. */
const BETTER_YIELD = 0.05;
/** Step size with which the usual time of an instance's batches is learnt. */
const USUAL_STEP = 0.1;

/** The batch that a model would run next. */
export interface NextBatch {
  /** When it is due, on the clock of the models in milliseconds. */
  readonly due: number;
  /** Place of its first request in the order of shares, where callers share all models. */
  readonly order?: number | undefined;
  /** Milliseconds that it takes at least, as far as is known. */
  readonly ms: number;
  /** Milliseconds that it takes with all requests that wait. */
  readonly fullMs: number;
  /** Rows for each millisecond with all requests that wait, as a share of what the best batches reach. */
  readonly yield: number;
}

/** A batcher whose next batch is formed when its turn has come, so that the most urgent requests are in it. */
export interface PlannedBatcher {
  /** True if it has requests that may run. */
  waits: boolean;
  next(now: number): NextBatch;
  /** Forms a batch, and hands it to the group of instances. It may find that there is nothing to run. */
  form(): void;
  /** Milliseconds of an instance for each millisecond, which the deadlines of its requests demand. */
  load(now: number): number;
  /** Milliseconds of the work that runs before this place in the order of shares of all models. */
  workBefore(order: number): number;
}

/** Work of one model that waits for its turn. */
export interface PlannedWork {
  readonly batcher: PlannedBatcher | undefined;
  /** Undefined if nothing waits. */
  next(now: number, usualMs: number): NextBatch | undefined;
}

/** An instance in the plan. */
export interface PlannedLease extends RateLimitedInstance {
  /** Its source of batches; set once it has been staged. */
  work: PlannedWork | undefined;
  /** Number of its batches that run. It holds its resources once for all of them. */
  running: number;
  startedAt: number;
  /** When its batch is expected to end. */
  endsAt: number;
  /** Usual duration of its batches in milliseconds; 0 while none has ended. */
  usualMs: number;
  /** Number of calls to other models that its batches wait for. Meanwhile others may use its resources. */
  waiting: number;
}

/**
 * One plan for all models of a machine (`rateLimit: "deadlines"`). Cores and GPUs are resources. An instance takes one
 * core, or its GPU, while it runs a batch, unless its group says otherwise. Whenever resources are free, the most urgent
 * batch of all models is formed and runs.
 *
 * ```
 * model a: next batch due 12.0, takes 5 ms --+
 * model b: next batch due 14.5, takes 9 ms --+--> first due, unless it makes another late --> free cores
 * model c: no deadline: due 1 s after arrival+
 * ```
 *
 * A batch whose resources are not free keeps them from all that are due later.
 */
export class MachinePlan extends RateLimiter {
  readonly #clock: Clock;
  readonly #leases = new Set<PlannedLease>();
  #granting = false;
  #again = false;
  #deferred = false;
  /** The instance whose batch is formed. It has its resources already, but does not run. */
  #forming: PlannedLease | undefined;

  constructor(
    clock: Clock,
    resources: readonly RateLimitResource[] = [],
    onLimits?: (text: string) => void,
    cores = availableParallelism(),
  ) {
    const ofMachine = [
      { name: CORES, count: cores },
      { name: GPU, count: 1 },
    ];
    super(resources, onLimits, ofMachine);
    this.#clock = clock;
  }

  override register(planned: PlannedInstance, model?: string): PlannedLease {
    const state = { work: undefined, running: 0, startedAt: 0, endsAt: 0, usualMs: 0, waiting: 0 };
    const lease: PlannedLease = Object.assign(super.register(planned, model), state);
    this.#leases.add(lease);
    return lease;
  }

  override unregister(lease: PlannedLease): void {
    super.unregister(lease);
    this.#leases.delete(lease);
    this.#grantLater();
  }

  /** Connects an instance with what feeds it. */
  feeds(lease: RateLimitedInstance, work: PlannedWork): void {
    (lease as PlannedLease).work = work;
  }

  /** Corrects the time that the batch of an instance, which has just started, is expected to take. */
  expects(lease: RateLimitedInstance, ms: number): void {
    const planned = lease as PlannedLease;
    if (planned === this.#forming) this.#forming = undefined;
    planned.endsAt = planned.startedAt + ms;
  }

  override stage(lease: PlannedLease): void {
    this.staged.push(lease);
    this.#grantLater();
  }

  override release(lease: PlannedLease, restage: () => void, ran = true): void {
    const now = this.#clock.now();
    if (ran) {
      lease.executions++;
      const step = lease.usualMs === 0 ? 1 : USUAL_STEP;
      lease.usualMs += step * (now - lease.startedAt - lease.usualMs);
    }
    if (--lease.running === 0) {
      if (lease.waiting === 0) this.pools.release(lease.demand);
      lease.waiting = 0;
    }
    restage();
    this.#grant();
  }

  /**
   * Lets others use the resources of a model's instance while its batch waits for another model.
   *
   * @returns ends the wait; undefined if no instance of the model runs
   */
  lend(model: string): (() => void) | undefined {
    for (const lease of this.#leases) {
      if (lease.model !== model || lease.running === 0) continue;
      const { startedAt } = lease;
      if (lease.waiting++ === 0) this.pools.release(lease.demand);
      this.#grantLater();
      return () => {
        // A batch that has ended has given everything back.
        if (lease.waiting === 0 || lease.startedAt !== startedAt) return;
        if (--lease.waiting === 0) this.pools.take(lease.demand);
      };
    }
    return undefined;
  }

  /** Times at which the resources for one, two, ... of these demands are free, in milliseconds from now on. */
  freeInMs(demand: ResourceDemand, now: number): readonly number[] {
    const times = this.pools.timesMet(demand);
    if (times === Number.POSITIVE_INFINITY) return [];
    const running = [...this.#leases].filter(
      (lease) => lease.running > 0 && lease.waiting === 0 && lease !== this.#forming,
    );
    running.sort((a, b) => leftMs(a, now) - leftMs(b, now));
    const own = this.#forming !== undefined && overlaps(this.#forming.demand, demand) ? 1 : 0;
    const free = this.pools.timesFree(demand) + own;
    const all: number[] = Array.from({ length: Math.max(0, Math.min(times, free)) }, () => 0);
    for (const lease of running) {
      if (all.length < times && overlaps(lease.demand, demand)) all.push(leftMs(lease, now));
    }
    return all;
  }

  /** Number of batches with this demand that can run at the same time. */
  places(demand: ResourceDemand): number | undefined {
    const times = this.pools.timesMet(demand);
    return times === Number.POSITIVE_INFINITY ? undefined : Math.max(1, times);
  }

  /** The batchers of all models except this one. */
  others(than: PlannedBatcher): ReadonlySet<PlannedBatcher> {
    const all = new Set<PlannedBatcher>();
    for (const { work } of this.#leases) if (work?.batcher !== undefined) all.add(work.batcher);
    all.delete(than);
    return all;
  }

  protected override demandOf(planned: PlannedInstance): ResourceDemand {
    const { kind, deviceId, group } = planned;
    if (group.rateLimiter !== undefined) return demandOf(planned);
    return new Map([[deviceId, new Map([[kind === "KIND_GPU" ? GPU : CORES, 1]])]]);
  }

  /** Requests that arrive in one turn of the event loop compete for the same cores. */
  #grantLater(): void {
    if (this.#deferred) return;
    this.#deferred = true;
    this.#clock.defer(() => {
      this.#deferred = false;
      this.#grant();
    });
  }

  #grant(): void {
    this.#again = true;
    if (this.#granting) return;
    this.#granting = true;
    try {
      while (this.#again) {
        this.#again = false;
        this.#grantOne();
      }
    } finally {
      this.#granting = false;
    }
  }

  #grantOne(): void {
    const now = this.#clock.now();
    const line = this.#line(now);
    const kept: ResourceDemand[] = [];
    for (const { lease, batch } of line) {
      const isKept = kept.some((demand) => overlaps(demand, lease.demand));
      if (!isKept && (lease.running > 0 || this.pools.allocate(lease.demand))) {
        this.unstage(lease);
        lease.running++;
        lease.startedAt = now;
        lease.endsAt = now + batch.ms;
        this.#again = true;
        this.#forming = lease;
        lease.granted();
        this.#forming = undefined;
        return;
      }
      kept.push(lease.demand);
    }
  }

  /**
   * The staged instances in the order in which they should run: by their deadlines. Another batch goes before the first
   * one if it would be late otherwise and the first one would not. So does a batch that has more of its requests together,
   * if the first one has time for a full batch after it.
   */
  #line(now: number): { readonly lease: PlannedLease; readonly batch: NextBatch }[] {
    const line: { readonly lease: PlannedLease; readonly batch: NextBatch }[] = [];
    for (const lease of this.staged as PlannedLease[]) {
      const batch = lease.work?.next(now, lease.usualMs) ?? NOTHING;
      line.push({ lease, batch });
    }
    line.sort((a, b) => a.batch.due - b.batch.due);
    orderByShares(line);
    const first = line[0];
    if (first === undefined || first.batch.order !== undefined || line.length === 1) return line;
    const inTimeAfter = (ms: number, { due, ms: own }: NextBatch): boolean => now + ms + own <= due;
    let chosen = 0;
    for (let i = 1; i < line.length; i++) {
      const { lease, batch } = line[i]!;
      const competes = overlaps(first.lease.demand, lease.demand);
      if (!competes || !inTimeAfter(0, batch) || !inTimeAfter(batch.ms, first.batch)) continue;
      if (!inTimeAfter(first.batch.ms, batch)) {
        chosen = i;
        break;
      }
      const hasTime = inTimeAfter(batch.fullMs + first.batch.fullMs - first.batch.ms, first.batch);
      if (hasTime && batch.yield > line[chosen]!.batch.yield + BETTER_YIELD) chosen = i;
    }
    line.unshift(...line.splice(chosen, 1));
    return line;
  }
}

/** Puts the batches whose callers share all models into the order of shares. The places of all others stay. */
function orderByShares(line: { readonly lease: PlannedLease; readonly batch: NextBatch }[]): void {
  const shared = line.filter(({ batch }) => batch.order !== undefined);
  if (shared.length < 2) return;
  shared.sort((a, b) => a.batch.order! - b.batch.order!);
  for (let i = 0, next = 0; i < line.length; i++) {
    if (line[i]!.batch.order !== undefined) line[i] = shared[next++]!;
  }
}

const NOTHING: NextBatch = { due: Number.NEGATIVE_INFINITY, ms: 0, fullMs: 0, yield: 1 };

/** Names of the resources that instances take by default. */
const CORES = "cores";
const GPU = "gpu";

function leftMs({ startedAt, endsAt }: PlannedLease, now: number): number {
  return Math.max(endsAt - now, OVERRUN_LEFT * (now - startedAt));
}

function overlaps(a: ResourceDemand, b: ResourceDemand): boolean {
  for (const [device, resources] of a) {
    const others = b.get(device);
    if (others === undefined) continue;
    for (const [name, count] of resources) if (count > 0 && (others.get(name) ?? 0) > 0) return true;
  }
  return false;
}

/**
 * Creates the rate limiter that the options ask for; undefined if it is off.
 *
 * @param log receives the amounts of all resources whenever they change, at verbose level 1
 * @throws TritonError INVALID_ARG for invalid options
 */
export function createRateLimiter(
  mode: "execution_count" | "deadlines" | "off" = "off",
  resources: readonly RateLimitResource[] = [],
  log?: Log,
  clock: Clock = realClock,
): RateLimiter | undefined {
  if (mode !== "execution_count" && mode !== "deadlines" && mode !== "off") {
    throw errorFor(
      "INVALID_OPTION",
      `rateLimit: expected 'execution_count', 'deadlines' or 'off', got '${String(mode)}'`,
    );
  }
  const wrong = resources.find(({ count }) => !Number.isSafeInteger(count) || count < 0);
  if (wrong !== undefined) {
    throw errorFor(
      "INVALID_OPTION",
      `rateLimitResources: expected a non-negative integer as the count of '${wrong.name}', got ${wrong.count}`,
    );
  }
  const onLimits = (text: string) => log?.verbose(1, text);
  if (mode === "off") return undefined;
  return mode === "deadlines"
    ? new MachinePlan(clock, resources, onLimits)
    : new RateLimiter(resources, onLimits);
}
