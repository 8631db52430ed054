import { NO_PARAMETERS, TritonError } from "@tritonjs/protocol";
import type { ModelStatistics } from "../observe/statistics.js";
import type { InferenceRequest, RequestHolder, RequestObserver } from "../request/inference-request.js";
import { selectOutputs } from "../request/inference-response.js";
import { type Clock, type Deadline, type DeadlineQueue, everyMs } from "../system/clock.js";
import { copyTensor } from "../tensor-rows.js";
import { type CachedOutputs, cacheKey, type GuardedCache } from "./response-cache.js";

/** The model behind the cache. */
interface CacheOwner {
  readonly name: string;
  readonly version: number;
  /** Names of all outputs of the model. */
  readonly outputNames: readonly string[];
  readonly clock: Clock;
  readonly deadlines: DeadlineQueue;
  readonly statistics: ModelStatistics;
  readonly scheduler: {
    /** Queues a request. Throws if the request is refused. */
    enqueue(request: InferenceRequest): void;
  };
}

/**
 * The response cache in front of one model. A request with a known answer is answered at once. Of equal requests that
 * arrive while the first one runs, only the first runs. If the cache fails, requests run.
 *
 * ```
 * known     -> answer
 * under way -> wait for it; when it fails, the next of those that wait runs
 * new       -> run, keep the outputs
 * ```
 *
 * With an asynchronous cache, a request is in flight from its lookup on.
 */
export class CachedModel {
  /** Requests that wait for an equal one in flight, by key. */
  readonly #inFlight = new Map<string, WaitingRequests>();
  readonly #mayWarn: () => boolean;

  constructor(
    private readonly cache: GuardedCache,
    private readonly owner: CacheOwner,
  ) {
    this.#mayWarn = everyMs(owner.clock, WARN_EVERY_MS);
  }

  /** Answers, parks or queues a request. Throws if the request is refused. */
  infer(request: InferenceRequest): void {
    const { name, version, outputNames, clock } = this.owner;
    const start = clock.now();
    const key = cacheKey(name, String(version), request, outputNames);
    const waiting = this.#inFlight.get(key);
    if (waiting !== undefined) {
      waiting.add(request);
      return;
    }
    const found = this.#lookUp(key);
    if (found instanceof Promise) this.#lookUpLater(request, key, found, start);
    else if (found === undefined) this.#run(request, key, clock.now() - start);
    else this.#answer(request, found, clock.now() - start);
  }

  /** Counts a failure of the cache, and reports it from time to time. */
  #cacheFailed(what: "lookup" | "insertion", error: unknown): void {
    const { name, version, statistics } = this.owner;
    statistics.cacheFailures++;
    if (!this.#mayWarn()) return;
    process.emitWarning(
      `${what} in the response cache failed for model '${name}/${version}': ${TritonError.from(error).message}`,
      "TritonWarning",
    );
  }

  #lookUp(key: string): CachedOutputs | undefined | Promise<CachedOutputs | undefined> {
    try {
      return this.cache.get(key);
    } catch (error) {
      this.#cacheFailed("lookup", error);
      return undefined;
    }
  }

  /** Holds the request, and equal ones, until the cache has answered or its time limit has passed. */
  #lookUpLater(
    request: InferenceRequest,
    key: string,
    found: Promise<CachedOutputs | undefined>,
    start: number,
  ): void {
    const { clock, deadlines } = this.owner;
    this.#inFlight.set(key, new WaitingRequests());
    request.holder = LOOKUP;
    let timeout: Deadline | undefined;
    let over = false;
    const done = (outputs?: CachedOutputs, failure?: unknown) => {
      if (over) return;
      over = true;
      timeout?.cancel();
      if (failure !== undefined) this.#cacheFailed("lookup", failure);
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
      timeout = deadlines.add(start + limitMs, () => {
        this.cache.timedOut();
        done(undefined, `no answer within ${limitMs} ms`);
      });
    }
    found.then(done, (error: unknown) => done(undefined, error ?? "rejected"));
  }

  #run(request: InferenceRequest, key: string, lookupMs: number): void {
    const waiting = this.#inFlight.get(key) ?? new WaitingRequests();
    this.#inFlight.set(key, waiting);
    const run: RequestObserver = {
      outputs: (_, outputs) => this.#computed(request, key, lookupMs, outputs),
      settled: (_, error) => {
        if (error !== undefined) this.#runNext(key);
      },
    };
    request.observe(run);
    try {
      this.owner.scheduler.enqueue(request);
    } catch (error) {
      request.ignore(run);
      if (waiting.size === 0) this.#inFlight.delete(key);
      throw error;
    }
  }

  /** Runs a request that was already accepted. If the model refuses it, the request ends with the error. */
  #runLate(request: InferenceRequest, key: string, lookupMs: number): void {
    try {
      this.#run(request, key, lookupMs);
    } catch (error) {
      request.cancel(TritonError.from(error));
      this.#runNext(key);
    }
  }

  /** @param made the outputs of the model; the request may want only some of them */
  #computed(request: InferenceRequest, key: string, lookupMs: number, made: CachedOutputs): void {
    const { clock, statistics } = this.owner;
    const start = clock.now();
    const outputs = selectOutputs(made, this.owner.outputNames, request.requestedOutputs);
    const copies = new Map([...outputs].map(([name, tensor]) => [name, copyTensor(tensor)]));
    let byteSize = 0;
    for (const tensor of copies.values()) byteSize += tensor.byteLength;
    this.#insert(key, copies, byteSize);
    statistics.recordCacheMiss(lookupMs + clock.now() - start);
    this.#answerAll(key, copies);
  }

  #insert(key: string, outputs: CachedOutputs, byteSize: number): void {
    const failed = (error: unknown) => this.#cacheFailed("insertion", error);
    try {
      const inserted = this.cache.set(key, outputs, byteSize);
      if (inserted instanceof Promise) inserted.catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  /** Runs the next of the waiting requests after the one in flight has failed. */
  #runNext(key: string): void {
    const waiting = this.#inFlight.get(key);
    const next = waiting?.takeFirst();
    if (next === undefined) {
      this.#inFlight.delete(key);
      return;
    }
    this.#runLate(next, key, 0);
  }

  /** Answers the requests that wait for an equal one. */
  #answerAll(key: string, outputs: CachedOutputs): void {
    const waiting = this.#inFlight.get(key);
    this.#inFlight.delete(key);
    for (const request of waiting?.takeAll() ?? []) this.#answer(request, outputs, 0);
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

/** Shortest interval between warnings: a cache that is down fails the lookup of every request. */
const WARN_EVERY_MS = 60_000;

/** Holds a request during the lookup of its answer. A cancelled request is noticed when the lookup is over. */
const LOOKUP: RequestHolder = { remove() {} };

/** Requests that wait for an equal one in flight. */
class WaitingRequests implements RequestHolder {
  readonly #requests = new Set<InferenceRequest>();

  get size(): number {
    return this.#requests.size;
  }

  add(request: InferenceRequest): void {
    this.#requests.add(request);
    request.holder = this;
  }

  remove(request: InferenceRequest): void {
    this.#requests.delete(request);
    request.holder = undefined;
  }

  /** Takes the request that has waited longest; undefined if none waits. */
  takeFirst(): InferenceRequest | undefined {
    const first = this.#requests.values().next().value;
    if (first !== undefined) this.remove(first);
    return first;
  }

  /** Takes all requests, in order of arrival. */
  takeAll(): readonly InferenceRequest[] {
    const all = [...this.#requests];
    for (const request of all) this.remove(request);
    return all;
  }
}
