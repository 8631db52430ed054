import type { TensorSpec } from "@tritonjs/protocol";
import type { Clock } from "../clock/clock.js";
import type { Gpus } from "../config/placement/gpus.js";
import type { ModelVersion } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import { createHandle } from "./create-handle.js";
import { changedGroups } from "./instance-changes.js";
import type { ModelHandle } from "./model-handle.js";
import type { Binding } from "./plan-binding.js";

/** The parts of the server that a handle uses. */
export interface HandleContext {
  readonly registry: ModelRegistry;
  readonly clock: Clock;
  readonly gpus: Gpus;
  readonly drainTimeoutMs: number;
}

/** Makes the handle of a bound model. The handle can take the model out of service and change its instances. */
export function handleOfBinding<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
  model: ModelVersion,
  binding: Binding,
  context: HandleContext,
): ModelHandle<I, O> {
  const { registry, clock, gpus, drainTimeoutMs } = context;
  const { instanceProblems = () => [] } = binding;
  model.instanceProblems = instanceProblems;
  return createHandle<I, O>(model, clock, {
    unbind: async () => {
      await model.unload(drainTimeoutMs);
      registry.remove(model);
    },
    changeInstances: async (change) => {
      await model.updateInstances(changedGroups(change, model.config, gpus, instanceProblems));
    },
  });
}
