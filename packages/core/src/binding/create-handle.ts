import {
  type InferOptions,
  type InputValuesOf,
  type ResultOf,
  type TensorSpec,
  TritonError,
} from "@tritonjs/protocol";
import { type CallBatchAxis, inferInProcess } from "../calling/in-process.js";
import type { InputValues } from "../calling/in-process-tensors.js";
import { streamInProcess } from "../calling/stream-in-process.js";
import type { Clock } from "../clock/clock.js";
import { modelMetadata } from "../config/schema/metadata-of-config.js";
import type { ModelVersion } from "../model/model-version.js";
import { reportStatistics } from "../service/statistics-report.js";
import type { InstanceChange } from "./instance-changes.js";
import type { ModelHandle } from "./model-handle.js";

/** Operations that a handle delegates. */
export interface HandleActions {
  unbind(): Promise<void>;
  changeInstances(change: InstanceChange): Promise<void>;
}

/** Makes the handle of a model version. */
export function createHandle<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
  model: ModelVersion,
  clock: Clock,
  { unbind, changeInstances }: HandleActions,
): ModelHandle<I, O> {
  const { name, version, config } = model;
  const infer = (inputs: InputValuesOf<I>, options: InferOptions, axis: CallBatchAxis) =>
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
        throw new TritonError(
          "INVALID_ARG",
          `cannot send a batch to model '${name}', which does not support batching: use infer() or inferSample()`,
          {
            reason: "INVALID_INPUT",
          },
        );
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
    status: () => ({ version, state: model.state, reason: model.reason }),
    metadata: () => modelMetadata(config, [version]),
    config: () => model.config,
    statistics: () => reportStatistics(name, version, model.statistics),
    queue: () => model.queue(),
    instances: () =>
      model.instances.instances.map(({ placement, passive, healthy, busy, executor }) => ({
        name: placement.name,
        index: placement.index,
        kind: placement.kind,
        deviceId: placement.deviceId,
        isolation: executor.isolation,
        passive,
        healthy,
        busy,
        memoryBytes: executor.memoryBytes,
        details: executor.details,
      })),
    updateInstances: changeInstances,
    unbind,
  };
}
