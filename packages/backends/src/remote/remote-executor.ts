import { failureOfError, type InferResult } from "@tritonjs/client/internal";
import {
  divideOutputs,
  type ExecutableRequest,
  type Execution,
  type ExecutionResult,
  type Executor,
  type ExecutorContext,
  joinInputs,
  OutputsWithParameters,
} from "@tritonjs/core/backend";
import { requestedBy, scalarOptions } from "@tritonjs/core/internal";
import {
  errorFor,
  isReservedParameter,
  type Parameters,
  type RequestSequence,
  type Tensor,
  TritonError,
} from "@tritonjs/protocol";
import type { RemoteCall, RemoteDescription } from "./replica-client.js";
import type { Replica, ReplicaPool } from "./replica-pool.js";

/**
 * Runs batches at the replicas of a pool. Its capacity is the number of their free slots, so a batch leaves the queue
 * when a slot is free. It goes to the replica with the fewest calls in flight.
 */
export class RemoteExecutor implements Executor {
  readonly mustFinish = false;
  readonly details: Readonly<Record<string, string>>;
  onHealth: ((healthy: boolean, reason?: TritonError) => void) | undefined;
  readonly #calls: RemoteCalls;
  readonly #sequences: RemoteSequences;
  readonly #declared: ReadonlySet<string>;
  readonly #stopped = new AbortController();
  readonly #changed = (): void => this.#report();
  #running = 0;
  #healthy = true;

  /** @param onStop called when the executor has stopped */
  constructor(
    private readonly context: ExecutorContext,
    private readonly pool: ReplicaPool,
    private readonly description: RemoteDescription,
    private readonly onStop: () => void,
  ) {
    this.#calls = new RemoteCalls(pool);
    this.#sequences = new RemoteSequences(pool, this.#calls);
    const { output, sequenceBatching } = context.info.modelConfig;
    const states = (sequenceBatching?.state ?? []).map(({ outputName }) => outputName);
    this.#declared = new Set([...output.map(({ name }) => name), ...states]);
    this.details = { replicas: pool.settings.urls.join(",") };
  }

  get capacity(): number {
    return this.#running + this.pool.free;
  }

  async start(): Promise<void> {
    await this.pool.firstServing();
    this.pool.onChange.add(this.#changed);
  }

  async execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    this.#running++;
    // Taken before anything else happens, so that the next batch sees one slot less.
    const first = this.description.sequences ? undefined : this.pool.take(true);
    try {
      if (execution.decoupled) {
        await this.#stream(first, execution);
        return undefined;
      }
      if (this.description.sequences) return await this.#inSequences(execution);
      return await this.#batch(first, execution);
    } finally {
      this.#running--;
    }
  }

  async checkReady(): Promise<void> {
    if (this.pool.isServing) return;
    const { model } = this.pool.settings;
    throw this.pool.reason ?? errorFor("INSTANCES_FAILED", `no replica of model '${model}' serves`);
  }

  async stop(): Promise<void> {
    this.pool.onChange.delete(this.#changed);
    this.#stopped.abort(errorFor("MODEL_STOPPED", `model '${this.context.info.modelName}' was stopped`));
    this.onStop();
  }

  /** Reports changes of health, and free slots, which the queue may be waiting for. */
  #report(): void {
    const { isServing, reason, free } = this.pool;
    if (isServing && this.#healthy && free === 0) return;
    this.#healthy = isServing;
    if (isServing) this.onHealth?.(true);
    else this.onHealth?.(false, reason && errorFor("INSTANCES_FAILED", reason.message, { cause: reason }));
  }

  /** Sends the requests together, or in groups with the same parameters. */
  async #batch(first: Replica | undefined, execution: Execution): Promise<readonly ExecutionResult[]> {
    const { requests } = execution;
    const groups = groupByParameters(requests);
    const limits = this.#limits(execution, execution.signal);
    if (groups.length === 1) {
      const outputs = await this.#joined(first, execution, execution, limits);
      execution.outputsReady();
      return outputs;
    }
    const results = new Array<ExecutionResult>(requests.length);
    await Promise.all(
      groups.map(async (positions, i) => {
        const part = {
          requests: positions.map((position) => requests[position]!),
          layout: execution.layout,
        };
        const replica = i === 0 ? first : undefined;
        const outputs = await this.#joined(replica, part, execution, limits).catch((thrown: unknown) =>
          positions.map(() => TritonError.from(thrown)),
        );
        for (const [at, position] of positions.entries()) results[position] = outputs[at]!;
      }),
    );
    execution.outputsReady();
    return results;
  }

  async #joined(
    first: Replica | undefined,
    part: Pick<Execution, "requests" | "mergedInputs" | "layout">,
    execution: Execution,
    limits: CallLimits,
  ): Promise<ExecutionResult[]> {
    const { requests } = part;
    let call: PreparedCall;
    try {
      call = this.#prepared(requests, Object.fromEntries(joinInputs(part)));
    } catch (thrown) {
      if (first !== undefined) this.pool.release(first);
      throw thrown;
    }
    execution.inputsReady();
    const result = await this.#calls.infer(first, call, limits);
    const rows = requests.reduce((sum, request) => sum + request.rows, 0);
    return divideOutputs(part, this.#outputsOf(result, rows, call, true));
  }

  /** Sends each request by itself: a server assigns the requests of a sequence to its own batches. */
  async #inSequences(execution: Execution): Promise<readonly ExecutionResult[]> {
    execution.inputsReady();
    const results = await Promise.all(
      execution.requests.map(async (request) => {
        const call = this.#prepared([request], Object.fromEntries(request.inputs));
        const limits = this.#limits(execution, request.signal);
        const { sequence } = scalarOptions(request);
        try {
          const result = await (sequence === undefined
            ? this.#calls.infer(undefined, call, limits)
            : this.#sequences.infer(sequence, call, limits));
          return this.#outputsOf(result, request.rows, call, false);
        } catch (thrown) {
          return TritonError.from(thrown);
        }
      }),
    );
    execution.outputsReady();
    return results;
  }

  /** Sends each request on a stream of its own, and passes its responses on as they arrive. */
  async #stream(first: Replica | undefined, execution: Execution): Promise<void> {
    execution.inputsReady();
    await Promise.all(
      execution.requests.map(async (request, i) => {
        try {
          const call = this.#prepared([request], Object.fromEntries(request.inputs));
          const limits = this.#limits(execution, request.signal);
          await this.#calls.stream(i === 0 ? first : undefined, call, limits, (result) => {
            if (result.tensors.size > 0) execution.send(i, this.#outputsOf(result, undefined, call, false));
            return execution.writable(i);
          });
          execution.finish(i);
        } catch (thrown) {
          execution.sendError(i, TritonError.from(thrown), true);
        }
      }),
    );
    execution.outputsReady();
  }

  #prepared(requests: readonly ExecutableRequest[], inputs: Record<string, Tensor>): PreparedCall {
    const real = requests.filter(({ ready }) => ready);
    const id = real
      .map((request) => request.id)
      .filter((one) => one !== "")
      .join(",");
    const traceparent = real.find((request) => request.traceparent !== undefined)?.traceparent;
    const outputs = requestedBy(real);
    const parameters = ownParameters(real[0]?.parameters);
    return {
      inputs,
      ...(id !== "" && { id }),
      ...(outputs.length > 0 && { outputs }),
      ...(parameters !== undefined && { parameters }),
      ...(traceparent !== undefined && { headers: { traceparent } }),
    };
  }

  #limits(execution: Execution, signal: AbortSignal): CallLimits {
    const { deadline, clock } = execution;
    return {
      signal: AbortSignal.any([signal, this.#stopped.signal]),
      leftMs: () => (deadline === undefined ? Number.POSITIVE_INFINITY : Math.max(1, deadline - clock.now())),
    };
  }

  /**
   * The outputs that the local configuration declares, with the parameters of the response.
   *
   * @throws TritonError INTERNAL for outputs that contradict the configuration.
   */
  #outputsOf(
    { tensors, parameters }: InferResult,
    rows: number | undefined,
    { outputs: requested = [] }: PreparedCall,
    ofBatch: boolean,
  ): ReadonlyMap<string, Tensor> {
    const declared = new Map([...tensors].filter(([name]) => this.#declared.has(name)));
    const outputs = this.context.checker.check(declared, rows, requested, ofBatch);
    const own = ownParameters(parameters);
    return own === undefined ? outputs : new OutputsWithParameters(outputs, own);
  }
}

/** Parameters except the protocol's own; undefined if there are none. */
function ownParameters(parameters: Parameters | undefined): Parameters | undefined {
  const own = Object.entries(parameters ?? {}).filter(
    ([name]) => !isReservedParameter(name) && name !== "triton_final_response",
  );
  return own.length === 0 ? undefined : Object.fromEntries(own);
}

/**
 * Groups the requests of a batch that one call can carry: those with the same parameters, which apply to a whole call.
 *
 * @returns positions of the requests, group by group
 */
function groupByParameters(requests: readonly ExecutableRequest[]): readonly (readonly number[])[] {
  const groups = new Map<string, number[]>();
  for (const [i, request] of requests.entries()) {
    // A null request fills a slot of a sequence batch, and has no parameters of its own.
    const key = request.ready ? keyOf(request.parameters) : "";
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [i]);
    else group.push(i);
  }
  return [...groups.values()];
}

function keyOf(parameters: Parameters): string {
  const entries = Object.entries(parameters);
  if (entries.length === 0) return "";
  entries.sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify(entries, (_, value) => (typeof value === "bigint" ? `${value}n` : value));
}

/** A call without the options that each attempt sets. */
type PreparedCall = Omit<RemoteCall, "signal" | "timeoutMs">;

interface CallLimits {
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

  /**
   * Makes one attempt, and hedges it once: at an idle replica if the answer is slow, at any other replica if this one
   * hangs. Releases both slots.
   */
  #hedged(
    replica: Replica,
    call: PreparedCall,
    limits: CallLimits,
    tried: ReadonlySet<Replica>,
  ): Promise<InferResult> {
    const { hedgeAfterMs } = this.pool.settings;
    if (hedgeAfterMs === Number.POSITIVE_INFINITY) {
      return this.#once(replica, call, limits.signal, limits).finally(() => this.pool.release(replica));
    }
    const over = new AbortController();
    const signal = AbortSignal.any([limits.signal, over.signal]);
    let timer: ReturnType<typeof setTimeout> | undefined;
    let running = 0;
    let onHang = (): void => {};
    const answer = new Promise<InferResult>((resolve, reject) => {
      let failure: unknown;
      let isHedged = false;
      const run = (at: Replica): void => {
        running++;
        this.#once(at, call, signal, limits)
          .finally(() => {
            running--;
            this.pool.release(at);
          })
          .then(resolve, (thrown: unknown) => {
            failure ??= thrown;
            if (running === 0) reject(failure);
          });
      };
      const hedge = (idleOnly: boolean): void => {
        if (isHedged) return;
        const other = this.pool.take(idleOnly, new Set([...tried, replica]));
        if (other === undefined) return;
        isHedged = true;
        run(other);
      };
      onHang = () => hedge(false);
      replica.hedges.add(onHang);
      if (hedgeAfterMs !== undefined) timer = setTimeout(() => hedge(true), hedgeAfterMs);
      run(replica);
    });
    return answer.finally(() => {
      clearTimeout(timer);
      replica.hedges.delete(onHang);
      if (running > 0) over.abort();
    });
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
    return errorFor("INSTANCES_FAILED", `no replica of model '${model}' serves${why}`, { cause });
  }

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
class RemoteSequences {
  readonly #replicas = new Map<RequestSequence["id"], Replica>();

  constructor(
    private readonly pool: ReplicaPool,
    private readonly calls: RemoteCalls,
  ) {}

  /**
   * Infers with a request of a sequence. It is not retried: the state would count it twice.
   *
   * @throws TritonError UNAVAILABLE if the replica with the state of the sequence is gone.
   */
  async infer(sequence: RequestSequence, call: PreparedCall, limits: CallLimits): Promise<InferResult> {
    const { id, start = false, end = false } = sequence;
    // Removed first, so that it becomes the newest entry below.
    const known = start ? undefined : this.#replicas.get(id);
    this.#replicas.delete(id);
    const sent = { ...call, sequence };
    const tried = new Set<Replica>();
    for (;;) {
      const replica = this.#take(id, known, tried);
      if (!end) this.#replicas.set(id, replica);
      if (this.#replicas.size > MOST_SEQUENCES) this.#replicas.delete(this.#replicas.keys().next().value!);
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

  #take(id: RequestSequence["id"], known: Replica | undefined, tried: ReadonlySet<Replica>): Replica {
    if (known === undefined) {
      const replica = this.pool.take(false, tried);
      if (replica !== undefined) return replica;
    } else if (this.pool.takeThis(known)) return known;
    const { model } = this.pool.settings;
    const where = known === undefined ? "no replica serves" : `its replica ${known.url} does not serve`;
    throw errorFor("SEQUENCE_LOST", `sequence '${id}' of model '${model}': ${where}; start it again`);
  }
}
