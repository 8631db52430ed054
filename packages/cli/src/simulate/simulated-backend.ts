import type { Backend, Execution, ExecutionResult, Executor } from "@tritonjs/core/backend";
import type { Clock } from "@tritonjs/core/testing";
import { type ModelConfig, type ModelInstanceGroup, Tensor, TritonError } from "@tritonjs/protocol";

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

/** Milliseconds between two events that count as one moment. */
const SAME_MOMENT_MS = 1e-6;

/** An instance that computes nothing and takes its time on the virtual clock. */
class SimulatedExecutor implements Executor {
  readonly details = {};
  readonly mustFinish = false;
  #lastEnd = Number.NEGATIVE_INFINITY;
  /** End of the batch that runs. */
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

/**
 * Makes a backend whose instances take the given times and compute nothing.
 *
 * @param takesAhead whether an instance gets its next batch while it runs one
 */
export function simulatedBackend(
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

const outputsBySize = new Map<number, ReadonlyMap<string, Tensor>>();

function outputsOf(batchSize: number): ReadonlyMap<string, Tensor> {
  const known = outputsBySize.get(batchSize);
  if (known !== undefined) return known;
  const shape = batchSize > 0 ? [batchSize, 1] : [1];
  const tensor = Tensor.fromBytes("UINT8", shape, new Uint8Array(Math.max(1, batchSize)));
  const outputs = new Map([[SIMULATED_OUTPUT, tensor]]);
  outputsBySize.set(batchSize, outputs);
  return outputs;
}

/** Name of the one input and the one output of a simulated model. */
export const SIMULATED_INPUT = "x";
const SIMULATED_OUTPUT = "y";

/**
 * Replaces what a simulation does not need: the model file and its tensors. Everything that decides about scheduling
 * stays: batch sizes, delays, queues, priorities, sequences, instances and their rate limits.
 *
 * @param instances number of instances for a configuration that does not say
 * @throws TritonError UNSUPPORTED for an ensemble, and for iterative sequences: their models decide what runs next
 */
export function simulatedConfig(config: ModelConfig, name: string, instances: number): ModelConfig {
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
export function takesAhead({ backend, platform }: ModelConfig): boolean {
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
