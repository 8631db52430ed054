import { costOf, type InferenceRequest } from "@tritonjs/core/extension";
import type { ShareOptions } from "./settings.js";
import { type CallerAccount, type CallerShare, urgencyOf } from "./urgency.js";

/** Credit of a caller that has had less than its share, in largest batches. */
const CREDIT_BATCHES = 4;
/** Number of idle callers that may be kept before a sweep. */
const IDLE_CALLERS = 256;
/** Virtual time is at most this far behind the request that ran last, so that a model that stands still delays nobody. */
const MOST_LAG = 10_000;
/** Time over which the rate of a caller is counted, in milliseconds; the time before counts too. */
const RATE_WINDOW_MS = 2000;
/** Milliseconds for which the rates of callers are used again. */
const RATES_FOR_MS = 20;
/** Change of the capacity up to which the rates are used again. */
const ALIKE = 0.1;
/**
 * Time after which a silent caller is forgotten, in milliseconds: until then, batches are small enough for its next
 * request. After it, a caller that sends alone has the largest batches again.
 */
const REMEMBERED_MS = 30_000;
/** Weight that older batches keep in the usual cost of time when another one ends. */
const KEPT_TIMES = 0.98;

/** Virtual time and callers that all models of a process share, where callers share all of them together. */
export class ShareLedger {
  /** Beginning of the request that left last, or of the first that waits for another model if that is earlier. */
  now = 0;
  readonly accounts = new Map<string, CallerAccount>();
  /** The queues in which requests wait. */
  readonly waiting = new Set<FairShares>();
  /** The caller of the last request, and when it was another one than that of the request before. */
  last: CallerAccount | undefined;
  otherAt = Number.NEGATIVE_INFINITY;
}

/**
 * Weighted fair queueing (start-time fair queueing). Virtual time goes on as requests leave the queue. A request begins
 * at the present virtual time, or after the last one of its caller, and takes its cost divided by the weight of the
 * caller. Requests run in the order of their beginnings: a caller that sends more than its share waits behind itself,
 * not in front of others. A caller that has had less than its share may begin a little in the past: a few of its
 * requests that come together then run together.
 *
 * ```
 * caller a, 3 requests:  |--a1--|--a2--|--a3--|
 * caller b, comes now:   |--b1--|                  order: a1 b1 a2 a3
 * ```
 *
 * Within one model, the cost is in rows, or in what the model's `cost` says. With a ledger of all models, it is in
 * milliseconds: rows or costs times the milliseconds that they usually take.
 */
export class FairShares {
  readonly nameOf: (request: InferenceRequest) => string;
  readonly #weights: ReadonlyMap<string, number>;
  readonly #seats = new Map<string, CallerShare>();
  readonly #ledger: ShareLedger;
  /** True if other models are charged to the same accounts. */
  readonly isCommon: boolean;
  /** Beginning of the first request that waits. */
  headOrder: () => number = () => Number.POSITIVE_INFINITY;
  #waiting = 0;
  #sweepAt = IDLE_CALLERS;
  readonly #maxBatchSize: number;
  #credit: number;
  /** Charge for one row or unit of cost. */
  #unit = 1;
  #timedMs = 0;
  #timedCost = 0;
  #rates: SmallCallers = { typical: 0, need: 0 };
  #ratesUntil = Number.NEGATIVE_INFINITY;
  #capacity = 0;

  /**
   * @param maxBatchSize rows of the largest batch
   * @param ledger accounts that other models share. @default accounts of its own
   */
  constructor({ by, weights = {} }: ShareOptions, maxBatchSize: number, ledger?: ShareLedger) {
    this.isCommon = ledger !== undefined;
    this.#ledger = ledger ?? new ShareLedger();
    this.#maxBatchSize = maxBatchSize;
    this.#credit = CREDIT_BATCHES * maxBatchSize;
    this.#weights = new Map(Object.entries(weights));
    this.nameOf =
      typeof by === "function"
        ? ({ id, caller, priority, parameters }) => String(by({ id, caller, priority, parameters }))
        : (request) => callerOf(request, by);
  }

  /** Number of callers that are remembered. */
  get size(): number {
    return this.#seats.size;
  }

  /** True if several callers have sent requests lately. */
  isContended(now: number): boolean {
    return now - this.#ledger.otherAt < REMEMBERED_MS;
  }

  /** Finds the place of a request in the order. Nothing is charged yet. */
  place(request: InferenceRequest): void {
    const name = this.nameOf(request);
    let share = this.#seats.get(name);
    if (share === undefined) share = this.#seat(name);
    const { queueStart: now } = request;
    if (now - share.since > RATE_WINDOW_MS) nextWindow(share, now);
    share.rows += request.rows;
    const urgency = urgencyOf(request);
    urgency.share = share;
    const ledger = this.#ledger;
    const { account } = share;
    if (account !== ledger.last) {
      if (ledger.last !== undefined) ledger.otherAt = now;
      ledger.last = account;
    }
    urgency.order = Math.max(ledger.now - this.#credit, account.finish);
  }

  /** Charges the caller for a request that joins the queue. */
  joined(request: InferenceRequest): void {
    const urgency = urgencyOf(request);
    const share = urgency.share!;
    const { account } = share;
    share.waiting++;
    if (this.#waiting++ === 0 && this.isCommon) this.#ledger.waiting.add(this);
    urgency.charge = (chargedCost(request) * this.#unit) / account.weight;
    account.finish = urgency.order + urgency.charge;
  }

  /** A request leaves the queue to run. */
  ran(request: InferenceRequest): void {
    this.#gone(request);
    const ledger = this.#ledger;
    const { order } = urgencyOf(request);
    if (order <= ledger.now) return;
    // A request that runs early because its model is idle must not take time on for those that wait elsewhere.
    let first = order;
    if (this.isCommon)
      for (const other of ledger.waiting) if (other !== this) first = Math.min(first, other.headOrder());
    ledger.now = Math.max(ledger.now, first, order - MOST_LAG);
  }

  /** A request leaves the queue without having run, so its caller gets its cost back. */
  left(request: InferenceRequest): void {
    this.#gone(request);
    const { share, charge } = urgencyOf(request);
    share!.account.finish -= charge;
  }

  /** Learns what rows or units of cost take, from a batch that has ended. */
  timed(requests: readonly InferenceRequest[], ms: number): void {
    if (!this.isCommon) return;
    let cost = 0;
    for (const request of requests) cost += chargedCost(request);
    this.#timedMs = KEPT_TIMES * this.#timedMs + ms;
    this.#timedCost = KEPT_TIMES * this.#timedCost + cost;
    if (this.#timedCost === 0) return;
    this.#unit = this.#timedMs / this.#timedCost;
    this.#credit = CREDIT_BATCHES * this.#maxBatchSize * this.#unit;
  }

  /**
   * The callers that send no more than their share of the capacity.
   *
   * @param capacity rows for each millisecond
   */
  smallCallers(now: number, capacity: number): SmallCallers {
    const isAlike = Math.abs(capacity - this.#capacity) <= ALIKE * this.#capacity;
    if (now < this.#ratesUntil && isAlike) return this.#rates;
    this.#ratesUntil = now + RATES_FOR_MS;
    this.#capacity = capacity;
    const callers = [...this.#seats.values()]
      .map((share) => ({ share, rate: rateOf(share, now), weight: share.account.weight }))
      .filter(({ rate }) => rate > 0)
      .sort((a, b) => a.rate / a.weight - b.rate / b.weight);
    let weights = 0;
    for (const { share, weight } of callers) {
      weights += weight;
      share.isSmall = false;
    }
    let left = capacity;
    let [total, squares, highest] = [0, 0, 0];
    for (const { share, rate, weight } of callers) {
      if (rate * weights > left * weight) break;
      share.isSmall = true;
      left -= rate;
      weights -= weight;
      total += rate;
      squares += rate * rate;
      highest = rate / weight;
    }
    this.#rates = { typical: total > 0 ? squares / total : 0, need: total + highest * weights };
    return this.#rates;
  }

  #gone(request: InferenceRequest): void {
    urgencyOf(request).share!.waiting--;
    if (--this.#waiting === 0 && this.isCommon) this.#ledger.waiting.delete(this);
  }

  #seat(name: string): CallerShare {
    const { accounts, now } = this.#ledger;
    if (this.#seats.size >= this.#sweepAt) this.#sweep();
    let account = accounts.get(name);
    if (account === undefined) {
      const weight = this.#weights.get(name) ?? 1;
      account = { name, weight, finish: now - this.#credit, models: 0 };
      accounts.set(name, account);
    }
    account.models++;
    const share: CallerShare = {
      account,
      waiting: 0,
      rows: 0,
      rowsBefore: 0,
      since: Number.NEGATIVE_INFINITY,
      isSmall: false,
    };
    this.#seats.set(name, share);
    return share;
  }

  /** Forgets callers that wait for nothing and would begin anew anyway. */
  #sweep(): void {
    for (const [name, { account, waiting }] of this.#seats) {
      if (waiting > 0 || account.finish > this.#ledger.now - this.#credit + this.#unit) continue;
      this.#seats.delete(name);
      if (--account.models === 0) this.#ledger.accounts.delete(name);
    }
    this.#sweepAt = 2 * this.#seats.size + IDLE_CALLERS;
  }
}

/** Name of the caller of a request: as its header says, else its parameter; empty if it is unknown. */
export function callerOf({ caller, parameters }: InferenceRequest, parameter: string): string {
  return caller === "" ? String(parameters[parameter] ?? "") : caller;
}

/** Rates of callers that send no more than their share, in rows for each millisecond. */
export interface SmallCallers {
  /** Rate of the callers that send most of their requests; 0 without small callers. */
  readonly typical: number;
  /** The rate of all callers at which these get what they send, while the others take their shares. */
  readonly need: number;
}

/** Begins another window of a caller's rate. */
function nextWindow(share: CallerShare, now: number): void {
  const isNext = now - share.since < 2 * RATE_WINDOW_MS;
  share.rowsBefore = isNext ? share.rows : 0;
  share.rows = 0;
  share.since = isNext ? share.since + RATE_WINDOW_MS : now;
}

/** Rows of a caller for each millisecond, in the last window in which it sent and the one before. */
function rateOf({ rows, rowsBefore, since }: CallerShare, now: number): number {
  const ms = now - since;
  if (ms > REMEMBERED_MS) return 0;
  const before = rowsBefore > 0 ? RATE_WINDOW_MS : 0;
  return (rows + rowsBefore) / Math.max(RATE_WINDOW_MS / 4, Math.min(ms, RATE_WINDOW_MS) + before);
}

/** Cost of a request: its own, where the model says what requests cost, else its rows. */
function chargedCost(request: InferenceRequest): number {
  const cost = costOf(request);
  return cost > 0 ? cost : request.rows;
}
