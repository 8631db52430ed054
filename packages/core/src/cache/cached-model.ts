import type { Clock } from "../clock/clock.js";
import type { Deadline, DeadlineQueue } from "../clock/deadline-queue.js";
import { TritonError } from "../errors/triton-error.js";
import type { ModelStatistics } from "../observe/statistics.js";
import type { InferenceRequest } from "../request/inference-request.js";
import { NO_PARAMETERS } from "../request/parameters.js";
import { copyTensor } from "../tensor/copy.js";
import { cacheKey } from "./cache-key.js";
import type { CachedOutputs, ResponseCache } from "./response-cache.js";

/** What the cache needs of the model in front of which it stands. */
export interface CacheOwner {
  readonly name: string;
  readonly version: number;
  /** Names of all outputs of the model. */
  readonly outputs: readonly string[];
  readonly clock: Clock;
  readonly deadlines: DeadlineQueue;
  readonly statistics: ModelStatistics;
  /** Queues a request. Throws when it is refused. */
  enqueue(request: InferenceRequest): void;
}

/**
 * The response cache in front of one model: a request whose answer is known is answered at once, and of equal
 * requests that come while the first one runs, only that one runs. Where the cache fails, requests run.
 *
 * ```
 * known     -> answer
 * under way -> wait for it; when it fails, the next of those that wait runs
 * new       -> run, keep the outputs
 * ```
 *
 * With a cache that answers later, a request is under way from its lookup on.
 */
export class CachedModel {
  /** Requests that wait for an equal one under way, by key. */
  readonly #underWay = new Map<string, Set<InferenceRequest>>();
  readonly #failures: CacheFailures;

  constructor(
    private readonly cache: ResponseCache,
    private readonly owner: CacheOwner,
  ) {
    this.#failures = new CacheFailures(`${owner.name}/${owner.version}`, owner.clock, owner.statistics);
  }

  /** Answers, parks or queues a request. Throws when it is refused. */
  infer(request: InferenceRequest): void {
    const { name, version, outputs, clock } = this.owner;
    const start = clock.now();
    const key = cacheKey(name, String(version), request, outputs);
    const waiting = this.#underWay.get(key);
    if (waiting !== undefined) {
      waiting.add(request);
      request.holder = { remove: (gone) => waiting.delete(gone) };
      return;
    }
    const found = this.#lookUp(key);
    if (found instanceof Promise) this.#lookUpLater(request, key, found, start);
    else if (found === undefined) this.#run(request, key, clock.now() - start);
    else this.#answer(request, found, clock.now() - start);
  }

  #lookUp(key: string): CachedOutputs | undefined | Promise<CachedOutputs | undefined> {
    try {
      return this.cache.get(key);
    } catch (error) {
      this.#failures.record("lookup", error);
      return undefined;
    }
  }

  /** Holds the request, and equal ones, until the cache has answered or taken too long. */
  #lookUpLater(
    request: InferenceRequest,
    key: string,
    found: Promise<CachedOutputs | undefined>,
    start: number,
  ): void {
    const { clock, deadlines } = this.owner;
    this.#underWay.set(key, new Set());
    // Whoever gives the request up need not tell: it is looked at when the lookup is over.
    request.holder = { remove() {} };
    let timeout: Deadline | undefined;
    let over = false;
    const done = (outputs?: CachedOutputs, failure?: unknown) => {
      if (over) return;
      over = true;
      timeout?.cancel();
      if (failure !== undefined) this.#failures.record("lookup", failure);
      const lookupMs = clock.now() - start;
      request.holder = undefined;
      if (outputs !== undefined) {
        this.#answerAll(key, outputs);
        this.#answer(request, outputs, lookupMs);
      } else if (request.settled) {
        this.#runNext(key);
      } else {
        this.#runLate(request, key, lookupMs);
      }
    };
    const limitMs = this.cache.lookupTimeoutMs;
    if (limitMs !== undefined) {
      timeout = deadlines.add(start + limitMs, () => done(undefined, `no answer within ${limitMs} ms`));
    }
    found.then(done, (error: unknown) => done(undefined, error ?? "rejected"));
  }

  #run(request: InferenceRequest, key: string, lookupMs: number): void {
    const waiting = this.#underWay.get(key) ?? new Set();
    this.#underWay.set(key, waiting);
    request.keepOutputs = (outputs) => this.#keep(key, outputs, lookupMs);
    const settled = request.onSettled;
    request.onSettled = (error) => {
      settled?.(error, request);
      if (error !== undefined) this.#runNext(key);
    };
    try {
      this.owner.enqueue(request);
    } catch (error) {
      request.onSettled = settled;
      request.keepOutputs = undefined;
      if (waiting.size === 0) this.#underWay.delete(key);
      throw error;
    }
  }

  /** Runs a request whose sender has long been told that it is accepted: when it is refused, it ends with the error. */
  #runLate(request: InferenceRequest, key: string, lookupMs: number): void {
    try {
      this.#run(request, key, lookupMs);
    } catch (error) {
      request.cancel(TritonError.from(error));
      this.#runNext(key);
    }
  }

  #keep(key: string, outputs: CachedOutputs, lookupMs: number): void {
    const { clock, statistics } = this.owner;
    const start = clock.now();
    const copies = new Map([...outputs].map(([name, tensor]) => [name, copyTensor(tensor)]));
    let byteSize = 0;
    for (const tensor of copies.values()) byteSize += tensor.byteLength;
    this.#insert(key, copies, byteSize);
    statistics.recordCacheMiss(lookupMs + clock.now() - start);
    this.#answerAll(key, copies);
  }

  #insert(key: string, outputs: CachedOutputs, byteSize: number): void {
    const failed = (error: unknown) => this.#failures.record("insertion", error);
    try {
      const inserted = this.cache.set(key, outputs, byteSize);
      if (inserted instanceof Promise) inserted.catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  /** The request under way failed: one of those that wait takes its place. */
  #runNext(key: string): void {
    const waiting = this.#underWay.get(key);
    const next = waiting?.values().next().value;
    if (waiting === undefined || next === undefined) {
      this.#underWay.delete(key);
      return;
    }
    waiting.delete(next);
    next.holder = undefined;
    this.#runLate(next, key, 0);
  }

  /** Answers those that wait for an equal request. */
  #answerAll(key: string, outputs: CachedOutputs): void {
    const waiting = this.#underWay.get(key);
    this.#underWay.delete(key);
    for (const request of waiting ?? []) this.#answer(request, outputs, 0);
  }

  #answer(request: InferenceRequest, outputs: CachedOutputs, lookupMs: number): void {
    if (request.settled) return;
    const { name, version, clock, statistics } = this.owner;
    request.holder = undefined;
    statistics.recordCacheHit(lookupMs, clock.now() - request.queueStart, clock.wallNow());
    const { id } = request;
    request.respond({
      modelName: name,
      modelVersion: String(version),
      id,
      parameters: NO_PARAMETERS,
      outputs,
    });
  }
}

/** Warnings come no more often than this: a cache that is down fails every request's lookup. */
const WARN_EVERY_MS = 60_000;

/** Counts what went wrong in a cache, and says so now and then. */
class CacheFailures {
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly model: string,
    private readonly clock: Clock,
    private readonly statistics: ModelStatistics,
  ) {}

  record(what: "lookup" | "insertion", error: unknown): void {
    this.statistics.cacheFailures++;
    const now = this.clock.now();
    if (now - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = now;
    process.emitWarning(
      `${what} in the response cache failed for model '${this.model}': ${TritonError.from(error).message}`,
      "TritonWarning",
    );
  }
}
