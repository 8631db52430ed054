import type { Clock } from "../clock/clock.js";
import type { TritonError } from "../errors/triton-error.js";
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
  readonly clock: Clock;
  readonly statistics: ModelStatistics;
  /** Queues a request. Throws when it is refused. */
  enqueue(request: InferenceRequest): void;
}

/**
 * The response cache in front of one model: a request whose answer is known is answered at once, and of equal
 * requests that come while the first one runs, only that one runs.
 *
 * ```
 * known     -> answer
 * under way -> wait for it; when it fails, the next of those that wait runs
 * new       -> run, keep the outputs
 * ```
 */
export class CachedModel {
  /** Requests that wait for an equal one under way, by key. */
  readonly #underWay = new Map<string, Set<InferenceRequest>>();

  constructor(
    private readonly cache: ResponseCache,
    private readonly owner: CacheOwner,
  ) {}

  /** Answers, parks or queues a request. Throws when it is refused. */
  infer(request: InferenceRequest): void {
    const { name, version, clock } = this.owner;
    const start = clock.now();
    const key = cacheKey(name, String(version), request);
    const outputs = this.cache.get(key);
    const lookupMs = clock.now() - start;
    const waiting = this.#underWay.get(key);
    if (outputs !== undefined) {
      this.#answer(request, outputs, lookupMs);
    } else if (waiting !== undefined) {
      waiting.add(request);
      request.holder = { remove: (gone) => waiting.delete(gone) };
    } else {
      this.#run(request, key, lookupMs);
    }
  }

  #run(request: InferenceRequest, key: string, lookupMs: number): void {
    const waiting = this.#underWay.get(key) ?? new Set();
    this.#underWay.set(key, waiting);
    request.keepOutputs = (outputs) => this.#keep(key, outputs, lookupMs);
    const settled = request.onSettled;
    request.onSettled = (error) => {
      settled?.(error);
      if (error !== undefined) this.#runNext(key);
    };
    try {
      this.owner.enqueue(request);
    } catch (error) {
      this.#underWay.delete(key);
      throw error;
    }
  }

  #keep(key: string, outputs: CachedOutputs, lookupMs: number): void {
    const { clock, statistics } = this.owner;
    const start = clock.now();
    const copies = new Map([...outputs].map(([name, tensor]) => [name, copyTensor(tensor)]));
    let byteSize = 0;
    for (const tensor of copies.values()) byteSize += tensor.byteLength;
    this.cache.set(key, copies, byteSize);
    statistics.recordCacheMiss(lookupMs + clock.now() - start);
    const waiting = this.#underWay.get(key);
    this.#underWay.delete(key);
    for (const request of waiting ?? []) this.#answer(request, copies, 0);
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
    try {
      this.#run(next, key, 0);
    } catch (error) {
      next.cancel(error as TritonError);
    }
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
