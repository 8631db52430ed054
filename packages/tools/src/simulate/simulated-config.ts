import { type ModelConfig, type ModelInstanceGroup, TritonError } from "@tritonjs/protocol";

/** Name of the one input and the one output of a simulated model. */
export const SIMULATED_INPUT = "x";
export const SIMULATED_OUTPUT = "y";

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
