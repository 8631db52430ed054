import type { InferResult } from "@tritonjs/client/internal";
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
import { isReservedParameter, type Parameters, type Tensor, TritonError } from "@tritonjs/protocol";
import { type CallLimits, type PreparedCall, RemoteCalls, RemoteSequences } from "./remote-calls.js";
import type { Replica, ReplicaPool } from "./replica-pool.js";

/** How the model at the replicas differs from a plain one. */
interface RemoteBehaviour {
  /** True if it keeps a state for each sequence. */
  readonly sequences: boolean;
}

/**
 * Runs batches at the replicas of a pool. Its capacity is the number of their free slots, so a batch leaves the queue
 * when a slot is free. It goes to the replica with the fewest calls in flight.
 */
export class RemoteExecutor implements Executor {
  readonly mustFinish = false;
  readonly details: Readonly<Record<string, string>>;
  onHealth: ((healthy: boolean, reason?: TritonError) => void) | undefined;
  readonly #context: ExecutorContext;
  readonly #pool: ReplicaPool;
  readonly #behaviour: RemoteBehaviour;
  readonly #calls: RemoteCalls;
  readonly #sequences: RemoteSequences;
  readonly #declared: ReadonlySet<string>;
  readonly #stopped = new AbortController();
  readonly #onStop: () => void;
  readonly #changed = (): void => this.#report();
  #running = 0;
  #healthy = true;

  /** @param onStop called when the executor has stopped */
  constructor(context: ExecutorContext, pool: ReplicaPool, behaviour: RemoteBehaviour, onStop: () => void) {
    this.#context = context;
    this.#pool = pool;
    this.#behaviour = behaviour;
    this.#onStop = onStop;
    this.#calls = new RemoteCalls(pool);
    this.#sequences = new RemoteSequences(pool, this.#calls);
    const { output, sequenceBatching } = context.info.modelConfig;
    const states = (sequenceBatching?.state ?? []).map(({ outputName }) => outputName);
    this.#declared = new Set([...output.map(({ name }) => name), ...states]);
    this.details = { replicas: pool.settings.urls.join(",") };
  }

  get capacity(): number {
    return this.#running + this.#pool.free;
  }

  async start(): Promise<void> {
    await this.#pool.firstServing();
    this.#pool.onChange.add(this.#changed);
  }

  async execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    this.#running++;
    // Taken before anything else happens, so that the next batch sees one slot less.
    const first = this.#behaviour.sequences ? undefined : this.#pool.take(true);
    try {
      if (execution.decoupled) {
        await this.#stream(first, execution);
        return undefined;
      }
      if (this.#behaviour.sequences) return await this.#inSequences(execution);
      return await this.#batch(first, execution);
    } finally {
      this.#running--;
    }
  }

  async checkReady(): Promise<void> {
    if (this.#pool.isServing) return;
    const { model } = this.#pool.settings;
    const text = `no replica of model '${model}' serves`;
    throw this.#pool.reason ?? new TritonError("UNAVAILABLE", text, { reason: "INSTANCES_FAILED" });
  }

  async stop(): Promise<void> {
    this.#pool.onChange.delete(this.#changed);
    this.#stopped.abort(
      new TritonError("UNAVAILABLE", `model '${this.#context.info.modelName}' was stopped`, {
        reason: "MODEL_STOPPED",
      }),
    );
    this.#onStop();
  }

  /** Reports changes of health, and free slots, which the queue may be waiting for. */
  #report(): void {
    const { isServing, reason, free } = this.#pool;
    if (isServing && this.#healthy && free === 0) return;
    this.#healthy = isServing;
    if (isServing) this.onHealth?.(true);
    else this.onHealth?.(false, reason && unavailable(reason));
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
      if (first !== undefined) this.#pool.release(first);
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
        const hasId =
          request.correlationId !== undefined && request.correlationId !== "" && request.correlationId !== 0n;
        try {
          const result = await (hasId
            ? this.#sequences.infer(request, call, limits)
            : this.#calls.infer(undefined, call, limits));
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
    const outputs = this.#context.checker.check(declared, rows, requested, ofBatch);
    const own = ownParameters(parameters);
    return own === undefined ? outputs : new OutputsWithParameters(outputs, own);
  }
}

function unavailable(reason: TritonError): TritonError {
  return new TritonError("UNAVAILABLE", reason.message, { reason: "INSTANCES_FAILED", cause: reason });
}

/** Outputs that any of the requests wants; empty if one wants all. */
function requestedBy(requests: readonly ExecutableRequest[]): readonly string[] {
  if (requests.length === 1) return requests[0]!.requestedOutputs;
  if (requests.some(({ requestedOutputs }) => requestedOutputs.length === 0)) return [];
  return [...new Set(requests.flatMap(({ requestedOutputs }) => requestedOutputs))];
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
