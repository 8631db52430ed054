import type { InputValuesOf, ResultOf } from "../callable/tensors-of.js";
import type { Clock } from "../clock/clock.js";
import { modelMetadata } from "../config/model-metadata.js";
import type { TensorSpec } from "../config/tensor-spec.js";
import { TritonError } from "../errors/triton-error.js";
import type { ModelVersion } from "../model/model-version.js";
import { reportStatistics } from "../service/statistics-report.js";
import { type BatchAxis, inferInProcess } from "./in-process.js";
import type { InputValues } from "./in-process-tensors.js";
import type { InferOptions } from "./infer-options.js";
import type { ModelHandle } from "./model-handle.js";
import { streamInProcess } from "./stream-in-process.js";

/** The handle of a model version. */
export function createHandle<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
  model: ModelVersion,
  clock: Clock,
  unbind: () => Promise<void>,
): ModelHandle<I, O> {
  const { name, version, config } = model;
  const infer = (inputs: InputValuesOf<I>, options: InferOptions, axis: BatchAxis) =>
    inferInProcess(model, clock, inputs as InputValues, options, axis) as Promise<unknown> as Promise<
      ResultOf<O>
    >;
  return {
    name,
    version,
    infer: (inputs, options = {}) => infer(inputs, options, "given"),
    inferSample: (inputs, options = {}) => infer(inputs, options, "added"),
    async inferBatch(inputs, options = {}) {
      if (config.maxBatchSize === 0) {
        throw new TritonError("INVALID_ARG", `model '${name}' has no batch axis: use infer or inferSample`);
      }
      return infer(inputs, options, "given");
    },
    stream: (inputs, options = {}) =>
      streamInProcess(
        model,
        clock,
        inputs as InputValues,
        options,
      ) as AsyncGenerator<unknown> as AsyncGenerator<ResultOf<O>, void, void>,
    ready: () => model.ready,
    metadata: () => modelMetadata(config, [version]),
    config: () => config,
    statistics: () => reportStatistics(name, version, model.statistics),
    instances: () =>
      model.instances.instances.map(({ placement, healthy, busy, executor }) => ({
        ...placement,
        healthy,
        busy,
        details: executor.details,
      })),
    unbind,
  };
}
