import { type ModelConfig, type ModelWarmup, type Tensor, TritonError } from "@tritonjs/protocol";
import { Payload } from "../batch/payload.js";
import { sequenceTensors } from "../config/schema/sequence-batching.js";

import type { ReadDataFile } from "../files/data-file.js";
import type { ModelInstance } from "../instance/model-instance.js";
import type { ModelStatistics } from "../observe/statistics.js";
import type { RequestValidator } from "../request/validate-request.js";

import { warmupRequests } from "./warmup-requests.js";

/**
 * Runs every warmup sample through an instance before it serves. The executions count in the statistics, as in Triton.
 *
 * @param readFile reads an `input_data_file`
 * @throws TritonError for the first sample that fails: the model is then not loaded.
 */
export async function warmUp(
  config: ModelConfig,
  instance: ModelInstance,
  validator: RequestValidator,
  statistics: ModelStatistics,
  now: () => number,
  readFile: ReadDataFile,
): Promise<void> {
  for (const sample of config.modelWarmup) {
    for (let run = 0; run < Math.max(1, sample.count); run++) {
      await runSample(config, instance, sample, validator, statistics, now, readFile);
    }
  }
}

async function runSample(
  config: ModelConfig,
  instance: ModelInstance,
  sample: ModelWarmup,
  validator: RequestValidator,
  statistics: ModelStatistics,
  now: () => number,
  readFile: ReadDataFile,
): Promise<void> {
  const failures: TritonError[] = [];
  const requests = warmupRequests(config, sample, readFile, (outcome) => {
    if (TritonError.is(outcome)) failures.push(outcome);
  });
  if (requests.length === 0) return;
  const payload = new Payload();
  for (const request of requests) {
    const { inputs } = request;
    request.inputs = withoutControls(config, inputs);
    validator.validate(request);
    request.inputs = new Map([...inputs, ...request.inputs]);
    request.queueStart = now();
    statistics.pendingCount++;
    payload.add(request);
  }
  const refusal = oversized(config, instance, requests.length);
  if (refusal === undefined) await instance.run(payload);
  else payload.fail(refusal);
  if (failures.length === 0) return;
  const texts = failures.map(({ message }) => `${message}; `).join("");
  throw new TritonError("INVALID_ARG", `failed to run warmup sample '${sample.name}': ${texts}`, {
    reason: "WARMUP_FAILED",
    cause: failures[0],
  });
}

/** Reason why an instance cannot run a batch of this size. Each request of a sample is one row. */
function oversized(
  { maxBatchSize }: ModelConfig,
  { executor, placement }: ModelInstance,
  size: number,
): TritonError | undefined {
  if (executor.takesAnyBatchSize || size === 1 || size <= maxBatchSize) return undefined;
  const text = `batch size ${size} for '${placement.name}', max allowed is ${maxBatchSize}`;
  return new TritonError("INTERNAL", text);
}

/** Removes the control tensors and states that a sample of a sequence model may have, and clients may not. */
function withoutControls(
  { sequenceBatching }: ModelConfig,
  inputs: ReadonlyMap<string, Tensor>,
): ReadonlyMap<string, Tensor> {
  const { inputs: controls } = sequenceTensors(sequenceBatching);
  return new Map([...inputs].filter(([name]) => !controls.includes(name)));
}
