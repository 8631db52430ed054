import { NO_PARAMETERS, TritonError } from "@tritonjs/protocol";
import type { ModelStatistics } from "../observe/statistics.js";
import type { InferenceRequest, RequestHolder, RequestObserver } from "../request/inference-request.js";
import { selectOutputs } from "../request/inference-response.js";
import type { Clock, Deadline, DeadlineQueue } from "../system/clock.js";
import { copyTensor } from "../tensor-rows.js";
import { type CachedOutputs, cacheKey, type ResponseCache } from "./response-cache.js";

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
export class CachedModel implements RunsOwner {
  /** Requests that wait for an equal one in flight, by key. */
  readonly #underWay = new Map<string, WaitingRequests>();
  readonly #failures: CacheFailures;

  constructor(
    private readonly cache: ResponseCache,
    private readonly owner: CacheOwner,
  ) {
    this.#failures = new CacheFailures(`${owner.name}/${owner.version}`, owner.clock, owner.statistics);
  }

  /** Answers, parks or queues a request. Throws if the request is refused. */
  infer(request: InferenceRequest): void {
    const { name, version, outputNames, clock } = this.owner;
    const start = clock.now();
    const key = cacheKey(name, String(version), request, outputNames);
    const waiting = this.#underWay.get(key);
    if (waiting !== undefined) {
      waiting.add(request);
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

  /** Holds the request, and equal ones, until the cache has answered or its time limit has passed. */
  #lookUpLater(
    request: InferenceRequest,
    key: string,
    found: Promise<CachedOutputs | undefined>,
    start: number,
  ): void {
    const { clock, deadlines } = this.owner;
    this.#underWay.set(key, new WaitingRequests());
    request.holder = LOOKUP;
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
    const waiting = this.#underWay.get(key) ?? new WaitingRequests();
    this.#underWay.set(key, waiting);
    const run = new CachedRun(this, key, lookupMs);
    request.observe(run);
    try {
      this.owner.scheduler.enqueue(request);
    } catch (error) {
      request.ignore(run);
      if (waiting.size === 0) this.#underWay.delete(key);
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

  computed(request: InferenceRequest, { key, lookupMs }: CachedRun, made: CachedOutputs): void {
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
    const failed = (error: unknown) => this.#failures.record("insertion", error);
    try {
      const inserted = this.cache.set(key, outputs, byteSize);
      if (inserted instanceof Promise) inserted.catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  failed({ key }: CachedRun): void {
    this.#runNext(key);
  }

  /** Runs the next of the waiting requests after the one in flight has failed. */
  #runNext(key: string): void {
    const waiting = this.#underWay.get(key);
    const next = waiting?.takeFirst();
    if (next === undefined) {
      this.#underWay.delete(key);
      return;
    }
    this.#runLate(next, key, 0);
  }

  /** Answers the requests that wait for an equal one. */
  #answerAll(key: string, outputs: CachedOutputs): void {
    const waiting = this.#underWay.get(key);
    this.#underWay.delete(key);
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

/** Counts failures of a cache, and reports them at intervals. */
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

/** Is notified of the results of requests whose answers are to be cached. */
interface RunsOwner {
  /** The model has produced outputs; the request may want only some of them. */
  computed(request: InferenceRequest, run: CachedRun, outputs: CachedOutputs): void;
  /** The request has ended with an error. */
  failed(run: CachedRun): void;
}

/** A request in flight whose answer is to be cached, and which equal requests wait for. */
class CachedRun implements RequestObserver {
  readonly #owner: RunsOwner;

  constructor(
    owner: RunsOwner,
    readonly key: string,
    /** Milliseconds of the lookup that found no answer. */
    readonly lookupMs: number,
  ) {
    this.#owner = owner;
  }

  outputs(request: InferenceRequest, outputs: CachedOutputs): void {
    this.#owner.computed(request, this, outputs);
  }

  settled(_request: InferenceRequest, error: TritonError | undefined): void {
    if (error !== undefined) this.#owner.failed(this);
  }
}
