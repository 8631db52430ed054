import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { Triton } from "@tritonjs/core";
import type { Backend, Execution, ExecutionResult, Executor } from "@tritonjs/core/backend";
import type { Clock } from "@tritonjs/core/extension";
import {
  type DeadlineClass,
  InferenceRequest,
  type QueueOptions,
  readScalarOptions,
} from "@tritonjs/core/internal";
import {
  isDecoupled,
  type ModelConfig,
  type ModelInstanceGroup,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";
import { repository as withRepository } from "@tritonjs/repository";
import { writePrototxt } from "@tritonjs/repository/config";
import { scheduling } from "@tritonjs/scheduling";
import { type FoundModel, serviceOf } from "@tritonjs/server";
import { cleanUpAtExit } from "../command/exit-cleanups.js";
import { SimulationClock } from "./simulation-clock.js";

/** A request of a simulation. */
export interface SimulatedRequest extends QueueOptions {
  /** Arrival in milliseconds. */
  readonly atMs: number;
  /** Rows along the batch axis; 1 for a model without one. */
  readonly rows: number;
  /** Milliseconds that the sender waits for the answer, for a model with deadlines. */
  readonly limitMs?: number;
  /** True if the request ends when that time is over, with or without deadlines. */
  readonly endsAtLimit?: boolean;
  /** Name of the caller, for a model that callers share. */
  readonly caller?: string;
  readonly sequence?: { readonly id: bigint | string; readonly start: boolean; readonly end: boolean };
  /** Milliseconds that the request takes, for a model whose requests run by themselves, such as texts. */
  readonly durationMs?: number;
}

/** A number of clients. Each sends its next request as soon as its last one has ended. */
export interface ClosedLoop {
  /** Number of clients, which is the number of requests in flight. */
  readonly concurrency: number;
  /** Number of requests of all clients together. */
  readonly count: number;
  /** Rows of each request; 1 for a model without a batch axis. */
  readonly rows: number;
}

/** A model of a simulation, with its load. */
export interface SimulatedLoad {
  /** Configuration of the model; its tensors and its file do not matter. */
  readonly config: ModelConfig;
  /** Number of instances for a configuration without instance groups. @default 1 */
  readonly instances?: number;
  /** Number of texts that an instance generates at a time, for a model whose requests run by themselves. @default 1 */
  readonly concurrency?: number;
  /** Requests in the order in which they arrive, or clients that each wait for their response. */
  readonly requests: readonly SimulatedRequest[] | ClosedLoop;
  readonly times: BatchTimes;
}

/** Options of {@link simulate}. */
export interface SimulationOptions extends SimulatedLoad {
  /** Ends the simulation early. */
  readonly signal?: AbortSignal;
}

/** Outcome of a simulation. */
export interface SimulationResult {
  /** Milliseconds from the arrival of each request to its response; NaN for a request that failed. */
  readonly latenciesMs: Float64Array;
  /** Time at which each request ended in milliseconds; also of a request that failed. */
  readonly endsMs: Float64Array;
  /** Number of failed requests, by error text. */
  readonly failures: ReadonlyMap<string, number>;
  readonly batches: readonly SimulatedBatch[];
  /** Number of batches by the reason why they were cut. */
  readonly cuts: Readonly<Record<string, number>>;
  readonly instances: number;
  /** Outcomes of requests with deadlines, by class; empty for a model without them. */
  readonly deadlines: readonly DeadlineClass[];
  /** Milliseconds from the first arrival to the last response. */
  readonly durationMs: number;
}

/** Requests that share a turn of the event loop before the process may do other work. */
const TURN = 2000;

/**
 * Runs requests through the library's own scheduler and instances on a virtual clock. The model computes nothing: its
 * batches take the given times.
 *
 * @throws TritonError for a configuration that cannot be served
 */
export async function simulate({ signal, ...load }: SimulationOptions): Promise<SimulationResult> {
  const clock = new SimulationClock();
  const name = load.config.name || "model0";
  const { repository, forget } = writeRepository(simulatedConfig(load.config, name, load.instances ?? 1));
  const record = new LoadRecord(clock);
  const triton = new Triton({
    clock,
    extensions: [
      withRepository({
        modelRepository: repository,
        backends: { [BACKEND]: () => simulatedBackend(clock, load, record) },
      }),
      scheduling(),
    ],
  });
  try {
    await triton.ready();
    const send = record.sendTo(serviceOf(triton).model(name, ""));
    const { requests } = load;
    if ("concurrency" in requests) await runClosedLoop(requests, clock, send, signal);
    else await runSchedule(requests, clock, send, signal);
    const { cuts, instances } = serviceOf(triton).queue(name, "");
    const observed = serviceOf(triton)
      .inspector?.models()
      .find((one) => one.name === name);
    return record.result(cuts, instances.length, observed?.activity?.().deadlines ?? []);
  } finally {
    const closed = triton.close();
    await clock.drain();
    await closed;
    await rm(repository, { recursive: true, force: true });
    forget();
  }
}

/** Sends request number `index`. The listener is called once, when the request has ended. */
type Send = (index: number, request: SimulatedRequest, onEnd: () => void) => void;

const HOPELESS = "refused, because the answer would have been late (DEADLINE_TOO_CLOSE)";

/** Outcomes of the requests of a model. */
class LoadRecord {
  readonly batches: SimulatedBatch[] = [];
  readonly #latenciesMs: number[] = [];
  readonly #endsMs: number[] = [];
  readonly #failures = new Map<string, number>();
  #firstMs = Number.NaN;
  #lastMs = 0;

  constructor(private readonly clock: SimulationClock) {}

  sendTo(model: FoundModel): Send {
    const inputsOf = tensorsOf(SIMULATED_INPUT);
    const isBatched = model.config.maxBatchSize > 0;
    return (index, request, onEnd) => {
      if (Number.isNaN(this.#firstMs)) this.#firstMs = request.atMs;
      this.#latenciesMs[index] = this.#endsMs[index] = Number.NaN;
      const end = (outcome: unknown) => {
        this.#ended(index, request.atMs, TritonError.is(outcome) ? outcome : undefined);
        onEnd();
      };
      try {
        const sent = requestOf(model.name, request, inputsOf(isBatched ? request.rows : 0));
        let failure: unknown;
        sent.sender = {
          receive: (outcome, final) => {
            if (TritonError.is(outcome)) failure = outcome;
            if (final) end(failure);
          },
        };
        model.infer(sent);
      } catch (error) {
        end(TritonError.from(error));
      }
    };
  }

  #ended(index: number, sentMs: number, error: TritonError | undefined): void {
    const now = this.clock.now();
    this.#lastMs = now;
    this.#endsMs[index] = now;
    if (error === undefined) this.#latenciesMs[index] = now - sentMs;
    else {
      // Each refusal has its own numbers in its text.
      const text = error.reason === "DEADLINE_TOO_CLOSE" ? HOPELESS : error.message;
      this.#failures.set(text, (this.#failures.get(text) ?? 0) + 1);
    }
  }

  result(
    cuts: Readonly<Record<string, number>>,
    instances: number,
    deadlines: readonly DeadlineClass[],
  ): SimulationResult {
    return {
      latenciesMs: Float64Array.from(this.#latenciesMs),
      endsMs: Float64Array.from(this.#endsMs),
      failures: this.#failures,
      batches: this.batches,
      cuts,
      instances,
      deadlines,
      durationMs: Number.isNaN(this.#firstMs) ? 0 : this.#lastMs - this.#firstMs,
    };
  }
}

async function runSchedule(
  requests: readonly SimulatedRequest[],
  clock: SimulationClock,
  send: Send,
  signal: AbortSignal | undefined,
): Promise<void> {
  let open = 0;
  for (const [index, request] of requests.entries()) {
    await clock.advanceTo(request.atMs);
    if (index % TURN === 0) {
      await setImmediate();
      signal?.throwIfAborted();
    }
    open++;
    send(index, request, () => open--);
    clock.runDeferred();
  }
  await clock.runUntil(() => open === 0);
}

/** Clients whose requests end in one batch send their next ones together, as in one turn of the event loop. */
async function runClosedLoop(
  { concurrency, count, rows }: ClosedLoop,
  clock: SimulationClock,
  send: Send,
  signal: AbortSignal | undefined,
): Promise<void> {
  let [sent, ended, idle] = [0, 0, Math.min(concurrency, count)];
  const sendAll = () => {
    const ready = idle;
    idle = 0;
    for (let i = 0; i < ready && sent < count; i++) send(sent++, { atMs: clock.now(), rows }, onEnd);
  };
  const onEnd = () => {
    ended++;
    if (++idle === 1) clock.setTimer(0, sendAll);
  };
  sendAll();
  clock.runDeferred();
  while (ended < count) {
    await setImmediate();
    signal?.throwIfAborted();
    const before = ended;
    await clock.runUntil(() => ended >= Math.min(count, before + TURN));
    // Without a timer nothing more can happen.
    if (ended === before) return;
  }
}

/** Writes the repository at once: a second Ctrl-C meanwhile would leave its folder behind. */
function writeRepository(config: ModelConfig): { repository: string; forget(): void } {
  const repository = mkdtempSync(join(tmpdir(), "tritonjs-simulation-"));
  const forget = cleanUpAtExit(() => rmSync(repository, { recursive: true, force: true }));
  mkdirSync(join(repository, config.name, "1"), { recursive: true });
  writeFileSync(join(repository, config.name, "config.pbtxt"), writePrototxt(config));
  return { repository, forget };
}

/** Makes the one tensor of requests, or of responses, with a number of rows; 0 for a model without a batch axis. */
function tensorsOf(name: string): (rows: number) => ReadonlyMap<string, Tensor> {
  const known = new Map<number, ReadonlyMap<string, Tensor>>();
  return (rows) => {
    let tensors = known.get(rows);
    if (tensors === undefined) {
      const bytes = new Uint8Array(Math.max(1, rows));
      tensors = new Map([[name, Tensor.fromBytes("UINT8", rows > 0 ? [rows, 1] : [1], bytes)]]);
      known.set(rows, tensors);
    }
    return tensors;
  };
}

/** Parameter with the milliseconds that a request takes, if it has a time of its own. */
const OWN_DURATION = "simulated_ms";

function requestOf(
  name: string,
  wanted: SimulatedRequest,
  inputs: ReadonlyMap<string, Tensor>,
): InferenceRequest {
  const request = new InferenceRequest(name, { inputs });
  readScalarOptions(wanted, request);
  const { limitMs = 0 } = wanted;
  if (wanted.endsAtLimit === true) request.deadline = wanted.atMs + limitMs;
  else request.clientLimitMs = limitMs;
  request.caller = wanted.caller ?? "";
  const { durationMs } = wanted;
  if (durationMs !== undefined) request.parameters = { [OWN_DURATION]: durationMs };
  return request;
}

/** Time that batches take on a virtual clock. */
export interface BatchTimes {
  /** Milliseconds that a batch of this number of rows takes when it starts at `atMs`. */
  duration(rows: number, atMs: number): number;
  /** Milliseconds from the end of a batch to the start of the next one that waited for the instance. */
  readonly gapMs: number;
  /** Milliseconds from the moment when an idle instance gets a batch to the start of the batch. */
  readonly wakeMs: number;
}

/** A batch that a simulated instance has run. */
export interface SimulatedBatch {
  readonly rows: number;
  readonly requests: number;
  readonly startMs: number;
  readonly endMs: number;
}

const SAME_MOMENT_MS = 1e-6;

/** An instance that computes nothing and takes its time on the virtual clock. */
class SimulatedExecutor implements Executor {
  readonly details = {};
  readonly mustFinish = false;
  readonly capacity: number;
  readonly takesAhead: boolean;
  readonly #times: BatchTimes;
  #lastEnd = Number.NEGATIVE_INFINITY;
  #busyUntil = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly clock: Clock,
    { config, times, concurrency = 1 }: SimulatedLoad,
    private readonly onBatch: (batch: SimulatedBatch) => void,
  ) {
    this.#times = times;
    this.capacity = concurrency;
    this.takesAhead = concurrency === 1 && takesAhead(config);
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {}

  async execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    const { requests, decoupled } = execution;
    let rows = 0;
    for (const request of requests) rows += request.rows;
    const now = this.clock.now();
    const waited = now - this.#lastEnd < SAME_MOMENT_MS;
    const gapMs = waited ? this.#times.gapMs : this.#times.wakeMs;
    // A batch that the instance has got ahead starts directly after the one that runs.
    const startMs =
      this.capacity === 1 && this.#busyUntil > now + SAME_MOMENT_MS ? this.#busyUntil : now + gapMs;
    const own = Number(requests[0]?.parameters[OWN_DURATION] ?? Number.NaN);
    const tookMs = Number.isNaN(own) ? this.#times.duration(rows, startMs) : own;
    this.#busyUntil = startMs + tookMs;
    await new Promise<void>((done) => void this.clock.setTimer(startMs - now + tookMs, done));
    const endMs = this.clock.now();
    this.#lastEnd = endMs;
    this.onBatch({ rows, requests: requests.length, startMs, endMs });
    const results = requests.map(({ batchSize }) => outputsOf(batchSize));
    if (!decoupled) return results;
    for (const [i, outputs] of results.entries()) execution.send(i, outputs, true);
    return undefined;
  }
}

/** Makes a backend whose instances take the given times and compute nothing. */
function simulatedBackend(clock: Clock, load: SimulatedLoad, record: LoadRecord): Backend {
  return {
    backendName: BACKEND,
    platform: "",
    describe: () => undefined,
    createExecutor: () => new SimulatedExecutor(clock, load, (batch) => record.batches.push(batch)),
  };
}

const BACKEND = "simulated";

/** Name of the one input and the one output of a simulated model. */
const SIMULATED_INPUT = "x";
const SIMULATED_OUTPUT = "y";
const outputsOf = tensorsOf(SIMULATED_OUTPUT);

/**
 * Replaces what a simulation does not need: the model file and its tensors. Everything that decides about scheduling
 * stays: batch sizes, delays, queues, priorities, sequences, instances and their rate limits.
 */
function simulatedConfig(config: ModelConfig, name: string, instances: number): ModelConfig {
  if (config.ensembleScheduling !== undefined || config.sequenceBatching?.iterativeSequence === true) {
    const kind = config.ensembleScheduling === undefined ? "iterative sequences" : "an ensemble";
    throw new TritonError(
      "UNSUPPORTED",
      `cannot simulate model '${name}': expected a model with a batcher or without one, got ${kind}`,
    );
  }
  const tensor = { dataType: "TYPE_UINT8", dims: [1] };
  const { dynamicBatching, sequenceBatching, instanceGroup, parameters, maxBatchSize } = config;
  const simulated: Partial<ModelConfig> = {
    name,
    backend: BACKEND,
    maxBatchSize,
    input: [{ name: SIMULATED_INPUT, ...tensor }] as ModelConfig["input"],
    output: [{ name: SIMULATED_OUTPUT, ...tensor }] as ModelConfig["output"],
    instanceGroup: instanceGroup.length > 0 ? instanceGroup.map(onProcessors) : [groupOf(instances)],
    parameters,
    ...(isDecoupled(config) && { modelTransactionPolicy: { decoupled: true } }),
    ...(dynamicBatching === undefined ? {} : { dynamicBatching }),
    ...(sequenceBatching === undefined
      ? {}
      : { sequenceBatching: { ...sequenceBatching, controlInput: [], state: [] } }),
  };
  return { ...EMPTY, ...simulated } as ModelConfig;
}

/** Whether instances of the real model get their next batch while they run one: workers of ONNX Runtime do. */
function takesAhead({ backend, platform }: ModelConfig): boolean {
  return backend === "onnxruntime" || platform === "onnxruntime_onnx";
}

const EMPTY: Partial<ModelConfig> = {
  platform: "",
  runtime: "",
  batchInput: [],
  batchOutput: [],
  defaultModelFilename: "",
  ccModelFilenames: {},
  metricTags: {},
  modelWarmup: [],
};

const NO_DEVICES = { gpus: [], secondaryDevices: [], profile: [], hostPolicy: "" };

/** A group of the same number of instances that needs no GPU. A group on several GPUs has its count on each. */
function onProcessors(group: ModelInstanceGroup): ModelInstanceGroup {
  const { name, count, gpus, rateLimiter, passive } = group;
  const instances = Math.max(1, count) * Math.max(1, gpus.length);
  return {
    ...groupOf(instances),
    name,
    passive,
    ...(rateLimiter === undefined ? {} : { rateLimiter }),
  };
}

function groupOf(count: number): ModelInstanceGroup {
  return { ...NO_DEVICES, name: "", kind: "KIND_CPU", count, passive: false };
}
