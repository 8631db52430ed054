import {
  elementCount,
  fromConfigDataType,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
} from "@tritonjs/protocol";

import { batchTensorProblems } from "../options/batch-tensors.js";
import { targetLatencyProblems } from "../options/target-latency.js";
import { type Gpus, MachineGpus } from "../placement/gpus.js";
import { instanceGroupProblems } from "../placement/instance-groups.js";
import { dynamicBatchingProblems } from "./validate-dynamic-batching.js";
import { ensembleProblems } from "./validate-ensemble.js";
import { responseCacheProblems } from "./validate-response-cache.js";
import { validateSequenceBatching } from "./validate-sequence-batching.js";

/**
 * Lists all problems with a configuration, one per line. Empty for a valid one. Where Triton has a text for the
 * problem, it is used.
 */
export function validateConfig(config: ModelConfig, gpus: Gpus = new MachineGpus()): string[] {
  const problems: string[] = [];
  if (!Number.isInteger(config.maxBatchSize) || config.maxBatchSize < 0) {
    problems.push(`'max_batch_size' must be non-negative value for ${config.name}`);
  }
  if (config.output.length === 0) problems.push(`model '${config.name}' must have at least one output`);
  checkTensors("input", config.input, problems);
  checkTensors("output", config.output, problems);
  problems.push(...instanceGroupProblems(config, gpus));
  problems.push(...responseCacheProblems(config));
  if (config.dynamicBatching !== undefined) {
    problems.push(...dynamicBatchingProblems(config, config.dynamicBatching));
  }
  if (config.sequenceBatching !== undefined) {
    problems.push(...validateSequenceBatching(config, config.sequenceBatching));
  }
  problems.push(...targetLatencyProblems(config));
  problems.push(...batchTensorProblems(config));
  problems.push(...ensembleProblems(config));
  return problems;
}

function checkTensors(
  kind: "input" | "output",
  tensors: readonly (ModelInput | ModelOutput)[],
  problems: string[],
): void {
  const seen = new Set<string>();
  for (const tensor of tensors) {
    const label = `model ${kind} '${tensor.name}'`;
    if (tensor.name === "") problems.push(`model ${kind} must specify 'name'`);
    else if (seen.has(tensor.name)) problems.push(`${label} is given more than once`);
    seen.add(tensor.name);
    if (fromConfigDataType(tensor.dataType) === undefined) {
      problems.push(`${label}: expected a known 'data_type', got '${tensor.dataType}'`);
    }
    const impossible = tensor.dims.find((dim) => !Number.isSafeInteger(dim) || dim < -1 || dim === 0);
    if (impossible !== undefined) {
      problems.push(
        `${label} dimension must be integer >= 1, or -1 to indicate a variable-size dimension, got ${impossible}`,
      );
    } else if (!countable(tensor.dims)) {
      problems.push(`${label} has too many elements to count: [${tensor.dims.join(",")}]`);
    }
  }
}

function countable(dims: readonly number[]): boolean {
  try {
    elementCount(dims.filter((dim) => dim !== -1));
    return true;
  } catch {
    return false;
  }
}
