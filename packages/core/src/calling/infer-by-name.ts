import { type InferOptions, TritonError } from "@tritonjs/protocol";
import type { Clock } from "../clock/clock.js";
import type { ModelRegistry } from "../model/registry.js";
import type { StartUp } from "../repository/start-up.js";

import { inferInProcess } from "./in-process.js";
import type { InputValues, OutputArrays } from "./in-process-tensors.js";

/** The parts of the server that an inference by name uses. */
export interface NamedInference {
  readonly registry: ModelRegistry;
  readonly startUp: Pick<StartUp, "underWay" | "over">;
  readonly service: { readonly stopping: boolean };
  readonly models: { readonly clock: Clock };
}

/**
 * Infers with a model by name. While no version of it is in service, waits for those that load, and for a model that the
 * repository is about to load. A reload delays no request: the old version answers.
 */
export async function inferByName(
  { registry, startUp, service, models }: NamedInference,
  modelName: string,
  inputs: InputValues,
  { modelVersion, ...options }: InferOptions & { readonly modelVersion?: number },
): Promise<OutputArrays> {
  let values = inputs;
  if (service.stopping)
    throw new TritonError("UNAVAILABLE", "Server not ready", { reason: "SERVER_NOT_READY" });
  const isServed = registry
    .versions(modelName)
    .some(({ state, version }) => state === "READY" && (modelVersion ?? version) === version);
  if (!isServed && (startUp.underWay || registry.isLoading(modelName))) {
    // The caller may change its arrays during the wait.
    values = structuredClone(inputs);
    if (registry.versions(modelName).length === 0) await startUp.over;
    await registry.loading(modelName);
  }
  const model = registry.find(modelName, modelVersion === undefined ? "" : String(modelVersion));
  return inferInProcess(model, models.clock, values, options, "given");
}
