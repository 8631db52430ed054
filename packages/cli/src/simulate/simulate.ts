import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { Triton } from "@tritonjs/core";
import type { Backend, Execution, ExecutionResult, Executor } from "@tritonjs/core/backend";
import { writePrototxt } from "@tritonjs/core/config";
import { Heap, InferenceRequest, type QueueOptions, readScalarOptions } from "@tritonjs/core/internal";
import type { Clock, Timer } from "@tritonjs/core/testing";
import { type ModelConfig, type ModelInstanceGroup, Tensor, TritonError } from "@tritonjs/protocol";
import { cleanUpAtExit } from "../exit-cleanups.js";

/** A request of a simulation. */
export interface SimulatedRequest extends QueueOptions {
  /** Arrival in milliseconds. */
  readonly atMs: number;
  /** Rows along the batch axis; 1 for a model without one. */
  readonly rows: number;
  /** Milliseconds that the sender waits for the answer, for a model with deadlines. */
  readonly limitMs?: number;
  /** Name of the caller, for a model that callers share. */
  readonly caller?: string;
  readonly sequence?: { readonly id: bigint | string; readonly start: boolean; readonly end: boolean };
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

/** Options of {@link simulate}. */
export interface SimulationOptions {
  /** Configuration of the model; its tensors and its file do not matter. */
  readonly config: ModelConfig;
  /** Number of instances for a configuration without instance groups. @default 1 */
  readonly instances?: number;
  /** Requests in the order in which they arrive, or clients that each wait for their response. */
  readonly requests: readonly SimulatedRequest[] | ClosedLoop;
  readonly times: BatchTimes;
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
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const { config, requests, times, signal, instances = 1 } = options;
  const clock = new SimulationClock();
  const batches: SimulatedBatch[] = [];
  const name = config.name === "" ? "model" : config.name;
  const { repository, forget } = writeRepository(simulatedConfig(config, name, instances), name);
  const triton = new Triton({
    clock,
    modelRepository: repository,
    gpus: [],
    backends: {
      simulated: () => simulatedBackend(clock, times, takesAhead(config), (batch) => batches.push(batch)),
    },
  });
  try {
    await triton.ready();
    const model = triton.service.model(name, "");
    const inputsOf = tensorsOf(SIMULATED_INPUT);
    const isBatched = model.config.maxBatchSize > 0;
    const count = "concurrency" in requests ? requests.count : requests.length;
    const latenciesMs = new Float64Array(count).fill(Number.NaN);
    const endsMs = new Float64Array(count).fill(Number.NaN);
    const failures = new Map<string, number>();
    let [firstMs, lastMs] = [Number.NaN, 0];
    const send: Send = (index, request, onEnd) => {
      if (Number.isNaN(firstMs)) firstMs = request.atMs;
      const end = (outcome: unknown) => {
        lastMs = clock.now();
        endsMs[index] = lastMs;
        if (TritonError.is(outcome)) failures.set(outcome.message, (failures.get(outcome.message) ?? 0) + 1);
        else latenciesMs[index] = lastMs - request.atMs;
        onEnd();
      };
      try {
        const sent = requestOf(model.name, request, inputsOf(isBatched ? request.rows : 0));
        sent.sender = { receive: (outcome, final) => void (final && end(outcome)) };
        model.infer(sent);
      } catch (error) {
        end(TritonError.from(error));
      }
    };
    await ("concurrency" in requests
      ? runClosedLoop(requests, clock, send, signal)
      : runSchedule(requests, clock, send, signal));
    const queue = triton.service.queue(name, "");
    const durationMs = Number.isNaN(firstMs) ? 0 : lastMs - firstMs;
    const { length: instanceCount } = queue.instances;
    return { latenciesMs, endsMs, failures, batches, cuts: queue.cuts, instances: instanceCount, durationMs };
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
function writeRepository(config: ModelConfig, name: string): { repository: string; forget(): void } {
  const repository = mkdtempSync(join(tmpdir(), "tritonjs-simulation-"));
  const forget = cleanUpAtExit(() => rmSync(repository, { recursive: true, force: true }));
  mkdirSync(join(repository, name, "1"), { recursive: true });
  writeFileSync(join(repository, name, "config.pbtxt"), writePrototxt(config));
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

function requestOf(
  name: string,
  wanted: SimulatedRequest,
  inputs: ReadonlyMap<string, Tensor>,
): InferenceRequest {
  const request = new InferenceRequest(name, { inputs });
  readScalarOptions(wanted, request);
  request.clientLimitMs = wanted.limitMs ?? 0;
  request.caller = wanted.caller ?? "";
  return request;
}

interface Entry {
  readonly at: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/** Promise turns from the end of an execution to its last effect, with some to spare. */
const TURNS = 24;

/**
 * A virtual clock for millions of events: timers in a heap, without waiting for the real event loop. It lets
 * promises settle after each timer and runs deferred work.
 */
export class SimulationClock implements Clock {
  #now = 0;
  #order = 0;
  readonly #timers = new Heap<Entry>((a, b) => a.at - b.at || a.order - b.order);
  #deferred: (() => void)[] = [];

  now(): number {
    return this.#now;
  }

  wallNow(): number {
    return this.#now;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const entry: Entry = { at: this.#now + Math.max(0, delayMs), order: this.#order++, run };
    this.#timers.add(entry);
    return {
      cancel: () => {
        entry.run = undefined;
      },
    };
  }

  defer(run: () => void): void {
    this.#deferred.push(run);
  }

  runDeferred(): void {
    while (this.#deferred.length > 0) {
      const all = this.#deferred;
      this.#deferred = [];
      for (const run of all) run();
    }
  }

  /** Moves time to `at`, running due timers in order. Returns at once when none is due. */
  advanceTo(at: number): Promise<void> | undefined {
    if (this.#next() <= at) return this.#run(at);
    this.#now = at;
    return undefined;
  }

  /** Runs timers until a condition holds, or none is left. */
  async runUntil(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const next = this.#next();
      if (next === Number.POSITIVE_INFINITY) return;
      await this.#run(next);
    }
  }

  async drain(): Promise<void> {
    for (let next = this.#next(); next < Number.POSITIVE_INFINITY; next = this.#next()) await this.#run(next);
  }

  async #run(end: number): Promise<void> {
    while (this.#next() <= end) {
      const { at, run } = this.#timers.take()!;
      this.#now = Math.max(this.#now, at);
      run!();
      for (let turn = 0; turn < TURNS; turn++) await undefined;
      this.runDeferred();
    }
    this.#now = Math.max(this.#now, end);
  }

  /** Time of the next timer that was not cancelled. */
  #next(): number {
    while (this.#timers.first !== undefined && this.#timers.first.run === undefined) this.#timers.take();
    return this.#timers.first?.at ?? Number.POSITIVE_INFINITY;
  }
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
  #lastEnd = Number.NEGATIVE_INFINITY;
  #busyUntil = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly clock: Clock,
    private readonly times: BatchTimes,
    readonly takesAhead: boolean,
    private readonly onBatch: (batch: SimulatedBatch) => void,
  ) {}

  async start(): Promise<void> {}

  async stop(): Promise<void> {}

  execute({ requests }: Execution): Promise<readonly ExecutionResult[]> {
    let rows = 0;
    for (const request of requests) rows += request.rows;
    const now = this.clock.now();
    const waited = now - this.#lastEnd < SAME_MOMENT_MS;
    const gapMs = waited ? this.times.gapMs : this.times.wakeMs;
    // A batch that the instance has got ahead starts directly after the one that runs.
    const startMs = this.#busyUntil > now + SAME_MOMENT_MS ? this.#busyUntil : now + gapMs;
    const endMs = startMs + this.times.duration(rows, startMs);
    this.#busyUntil = endMs;
    const results = requests.map(({ batchSize }) => outputsOf(batchSize));
    return new Promise((resolve) => {
      this.clock.setTimer(endMs - now, () => {
        this.#lastEnd = this.clock.now();
        this.onBatch({ rows, requests: requests.length, startMs, endMs });
        resolve(results);
      });
    });
  }
}

/** Makes a backend whose instances take the given times and compute nothing. */
function simulatedBackend(
  clock: Clock,
  times: BatchTimes,
  takesAhead: boolean,
  onBatch: (batch: SimulatedBatch) => void,
): Backend {
  return {
    backendName: "simulated",
    platform: "",
    describe: () => undefined,
    createExecutor: () => new SimulatedExecutor(clock, times, takesAhead, onBatch),
  };
}

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
    backend: "simulated",
    maxBatchSize,
    input: [{ name: SIMULATED_INPUT, ...tensor }] as ModelConfig["input"],
    output: [{ name: SIMULATED_OUTPUT, ...tensor }] as ModelConfig["output"],
    instanceGroup: instanceGroup.length > 0 ? instanceGroup.map(onProcessors) : [groupOf(instances)],
    parameters,
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
