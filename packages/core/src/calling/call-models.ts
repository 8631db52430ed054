import type { CallInputs, CallModels, CallOrigin, ContextCallOptions } from "../callable/model-caller.js";
import type { Clock } from "../clock/clock.js";
import type { ModelRegistry } from "../model/registry.js";
import { inferInProcess } from "./in-process.js";
import type { NestedOptions } from "./send-in-process.js";
import { streamInProcess } from "./stream-in-process.js";
import { streamTensors } from "./stream-tensors.js";

/**
 * Lets callbacks call the models of a registry. A call gets the remaining time of its caller, and is cancelled with it.
 */
export function callModels(registry: ModelRegistry, clock: Clock): CallModels {
  const find = (name: string, { modelVersion }: ContextCallOptions) =>
    registry.find(name, modelVersion === undefined ? "" : String(modelVersion));
  return (origin) => ({
    async infer<R>(name: string, inputs: CallInputs, options: ContextCallOptions = {}) {
      const outputs = inferInProcess(find(name, options), clock, inputs, nested(origin, options), "given");
      return outputs as Promise<unknown> as Promise<R>;
    },
    async *stream<R>(name: string, inputs: CallInputs, options: ContextCallOptions = {}) {
      yield* streamInProcess(
        find(name, options),
        clock,
        inputs,
        nested(origin, options),
      ) as AsyncGenerator<unknown> as AsyncGenerator<R, void, void>;
    },
    async *callWithTensors(name, inputs, options) {
      yield* streamTensors(find(name, options), clock, inputs, { ...options, ...nested(origin, options) });
    },
  });
}

function nested(
  { signal, deadline, callers, trace }: CallOrigin,
  options: ContextCallOptions,
): NestedOptions {
  const both = options.signal === undefined ? signal : AbortSignal.any([signal, options.signal]);
  return { ...options, signal: both, deadline, callers, parentTrace: trace };
}
