import type { InferResult } from "@tritonjs/client/internal";
import { failureOfError } from "@tritonjs/client/internal";
import type { ExecutableRequest } from "@tritonjs/core/backend";
import { TritonError } from "@tritonjs/protocol";
import type { RemoteCall } from "./replica-client.js";
import type { Replica, ReplicaPool } from "./replica-pool.js";

/** A call without the options that each attempt sets. */
export type PreparedCall = Omit<RemoteCall, "signal" | "timeoutMs">;

/** Limits of a call. */
export interface CallLimits {
  readonly signal: AbortSignal;
  /** Milliseconds until the deadline of the call; `Infinity` without one. */
  leftMs(): number;
}

/** Calls the replicas of a pool. Retries on another replica where that is safe, and hedges a slow call. */
export class RemoteCalls {
  constructor(private readonly pool: ReplicaPool) {}

  /**
   * Infers with one response.
   *
   * @param first replica whose slot the caller has taken for this call; undefined to choose one
   * @throws TritonError the error of the last attempt, with the address of its replica.
   */
  infer(first: Replica | undefined, call: PreparedCall, limits: CallLimits): Promise<InferResult> {
    return this.#repeat(first, limits, (replica, tried) => this.#hedged(replica, call, limits, tried));
  }

  /** Infers at one replica only, for a request whose sequence is there. */
  async inferAt(replica: Replica, call: PreparedCall, limits: CallLimits): Promise<InferResult> {
    try {
      return await this.#once(replica, call, limits.signal, limits);
    } catch (thrown) {
      throw this.#named(thrown, replica);
    } finally {
      this.pool.release(replica);
    }
  }

  /**
   * Passes the responses to one request of a decoupled model to `send`. After the first response the request stays on
   * its replica.
   */
  async stream(
    first: Replica | undefined,
    call: PreparedCall,
    limits: CallLimits,
    send: (result: InferResult) => Promise<void> | undefined,
  ): Promise<void> {
    let answered = false;
    await this.#repeat(
      first,
      limits,
      async (replica) => {
        const leftMs = limits.leftMs();
        const options = { ...call, signal: limits.signal, timeoutMs: leftMs };
        try {
          for await (const result of replica.client.stream!(options)) {
            answered = true;
            await send(result);
          }
          replica.worked();
        } catch (thrown) {
          this.#observe(thrown, replica, false);
          throw thrown;
        } finally {
          this.pool.release(replica);
        }
      },
      () => !answered,
    );
  }

  async #repeat<T>(
    first: Replica | undefined,
    limits: CallLimits,
    attempt: (replica: Replica, tried: ReadonlySet<Replica>) => Promise<T>,
    mayRepeat = () => true,
  ): Promise<T> {
    const tried = new Set<Replica>();
    let replica = first ?? (await this.#next(tried, limits));
    for (let attempts = 0; ; attempts++) {
      if (replica === undefined) throw this.#noReplica();
      try {
        return await attempt(replica, tried);
      } catch (thrown) {
        const error = this.#named(thrown, replica);
        const repeats = attempts < this.pool.settings.retries && mayRepeat() && this.#isSafe(thrown);
        if (!repeats || limits.signal.aborted || limits.leftMs() <= 0) throw error;
        tried.add(replica);
        replica = await this.#next(tried, limits);
        if (replica === undefined) throw error;
      }
    }
  }

  /** Takes a replica that the call has not tried. If there is none, waits for any serving replica. */
  async #next(tried: Set<Replica>, { signal }: CallLimits): Promise<Replica | undefined> {
    const other = this.pool.take(false, tried);
    if (other !== undefined) return other;
    tried.clear();
    await this.pool.untilServing(signal);
    return signal.aborted ? undefined : this.pool.take(false);
  }

  /** Makes one attempt, and hedges it at an idle replica if the answer is slow. Releases both slots. */
  async #hedged(
    replica: Replica,
    call: PreparedCall,
    limits: CallLimits,
    tried: ReadonlySet<Replica>,
  ): Promise<InferResult> {
    const { hedgeAfterMs } = this.pool.settings;
    if (hedgeAfterMs === undefined) {
      return this.#once(replica, call, limits.signal, limits).finally(() => this.pool.release(replica));
    }
    const over = new AbortController();
    const signal = AbortSignal.any([limits.signal, over.signal]);
    const run = (at: Replica): Promise<InferResult> =>
      this.#once(at, call, signal, limits).finally(() => this.pool.release(at));
    let timer: ReturnType<typeof setTimeout> | undefined;
    const first = run(replica);
    const second = new Promise<InferResult>((resolve, reject) => {
      first.catch((thrown: unknown) => {
        // Without a second request, the failure of the first one is that of the attempt.
        clearTimeout(timer);
        if (timer !== undefined) reject(thrown);
      });
      timer = setTimeout(() => {
        const idle = this.pool.take(true, new Set([...tried, replica]));
        if (idle === undefined) return;
        timer = undefined;
        run(idle).then(resolve, reject);
      }, hedgeAfterMs);
    });
    try {
      return await Promise.any([first, second]);
    } catch (thrown) {
      throw (thrown as AggregateError).errors[0];
    } finally {
      clearTimeout(timer);
      over.abort();
    }
  }

  async #once(
    replica: Replica,
    call: PreparedCall,
    signal: AbortSignal,
    limits: CallLimits,
  ): Promise<InferResult> {
    const leftMs = limits.leftMs();
    const timeoutMs = Math.min(leftMs, this.pool.settings.timeoutMs);
    try {
      const result = await replica.client.infer({ ...call, signal, timeoutMs });
      replica.worked();
      return result;
    } catch (thrown) {
      this.#observe(thrown, replica, timeoutMs < leftMs);
      throw thrown;
    }
  }

  /**
   * Takes a failed replica out of service.
   *
   * @param hadTime true if the time limit of the call is that of the attempt, not the deadline of the requests
   */
  #observe(thrown: unknown, replica: Replica, hadTime: boolean): void {
    const error = TritonError.from(thrown);
    const isSlow = hadTime && error.code === "UNAVAILABLE" && error.reason === "CLIENT_TIMEOUT";
    if (isSlow || failureOfError(error) !== undefined) this.pool.failed(replica, error.retryAfterMs);
  }

  #isSafe(thrown: unknown): boolean {
    const { idempotent, retryUnavailable } = this.pool.settings;
    const error = TritonError.from(thrown);
    const failure = failureOfError(error);
    if (failure === "not-sent") return true;
    if (failure === "unavailable") return retryUnavailable;
    const timedOut = error.code === "UNAVAILABLE" && error.reason === "CLIENT_TIMEOUT";
    return (failure === "lost" || timedOut) && idempotent;
  }

  #noReplica(): TritonError {
    const { model } = this.pool.settings;
    const cause = this.pool.reason;
    const why = cause === undefined ? "" : `: ${cause.message}`;
    return new TritonError("UNAVAILABLE", `no replica of model '${model}' serves${why}`, {
      reason: "INSTANCES_FAILED",
      cause,
    });
  }

  /** The error with the address of the replica in its text. */
  #named(thrown: unknown, { url }: Replica): TritonError {
    const error = TritonError.from(thrown);
    const { code, reason, retryAfterMs, name } = error;
    return new TritonError(code, `replica ${url}: ${error.message}`, {
      reason,
      name,
      cause: error,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    });
  }
}

/** Largest number of remembered sequences. Beyond it the oldest is evicted, as a server would have evicted it. */
const MOST_SEQUENCES = 65_536;

/** The sequences of a model that keeps their state at its replicas: all requests of a sequence go to one replica. */
export class RemoteSequences {
  readonly #replicas = new Map<bigint | string, Replica>();

  constructor(
    private readonly pool: ReplicaPool,
    private readonly calls: RemoteCalls,
  ) {}

  /**
   * Infers with a request of a sequence. It is not retried: the state would count it twice.
   *
   * @throws TritonError UNAVAILABLE if the replica with the state of the sequence is gone.
   */
  async infer(
    { correlationId, sequenceStart: start, sequenceEnd: end }: ExecutableRequest,
    call: PreparedCall,
    limits: CallLimits,
  ): Promise<InferResult> {
    const id = correlationId!;
    // Removed first, so that it becomes the newest entry below.
    const known = start ? undefined : this.#replicas.get(id);
    this.#replicas.delete(id);
    const sent = { ...call, sequence: { id, start, end } };
    const tried = new Set<Replica>();
    for (;;) {
      const replica = this.#take(id, known, tried);
      if (!end) this.#remember(id, replica);
      try {
        return await this.calls.inferAt(replica, sent, limits);
      } catch (thrown) {
        const { cause } = thrown as TritonError;
        const wasSent = failureOfError((cause ?? {}) as object) !== "not-sent";
        if (wasSent || !start || limits.signal.aborted) throw thrown;
        this.#replicas.delete(id);
        tried.add(replica);
        if (!this.pool.replicas.some((other) => other.serving && !tried.has(other))) throw thrown;
      }
    }
  }

  #take(id: bigint | string, known: Replica | undefined, tried: ReadonlySet<Replica>): Replica {
    if (known === undefined) {
      const replica = this.pool.take(false, tried);
      if (replica !== undefined) return replica;
    } else if (this.pool.takeThis(known)) return known;
    const { model } = this.pool.settings;
    const where = known === undefined ? "no replica serves" : `its replica ${known.url} does not serve`;
    throw new TritonError("UNAVAILABLE", `sequence '${id}' of model '${model}': ${where}; start it again`, {
      reason: "SEQUENCE_LOST",
    });
  }

  #remember(id: bigint | string, replica: Replica): void {
    this.#replicas.set(id, replica);
    if (this.#replicas.size > MOST_SEQUENCES) this.#replicas.delete(this.#replicas.keys().next().value!);
  }
}
