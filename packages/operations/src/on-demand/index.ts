import type { Extension } from "@tritonjs/core/extension";
import { assertOptions, optionTypes } from "@tritonjs/protocol";
import { ON_DEMAND_PARAMETERS, type OnDemandOptions, OnDemandSettings } from "./on-demand-settings.js";
import { ResidentModels } from "./resident-models.js";

export type { OnDemandOptions } from "./on-demand-settings.js";

const TYPES = optionTypes<OnDemandOptions>({
  loadOnDemand: "boolean",
  modelTtlSecs: "number",
  modelMemoryBudgetMb: "number",
});

/**
 * Lets models leave memory while they serve, and come back at their next request. The options hold for models of a
 * repository. Parameters of a configuration hold for its model: `load_on_demand`, `ttl_seconds`, `memory_mb`,
 * `keep_loaded`.
 *
 * @throws TritonError INVALID_ARG for options that are not valid
 * @example
 * ```ts
 * const triton = new Triton({
 *   extensions: [
 *     repository({ modelRepository: "./models" }),
 *     modelsOnDemand({ loadOnDemand: true, modelTtlSecs: 600, modelMemoryBudgetMb: 4096 }),
 *   ],
 * });
 * ```
 */
export function modelsOnDemand(options: OnDemandOptions = {}): Extension {
  assertOptions("modelsOnDemand()", options, TYPES);
  const settings = new OnDemandSettings(options);
  return {
    name: "models-on-demand",
    parameters: ON_DEMAND_PARAMETERS,
    attach({ clock, log }) {
      const models = new ResidentModels(settings, clock, log("residency"));
      return {
        admit: (model) => models.admit(model),
        startsOnDisk: (config) => models.startsOnDisk(config),
        families: () => models.families(),
        close: () => models.close(),
      };
    },
  };
}
