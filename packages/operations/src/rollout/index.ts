import { assertOptions, optionTypes } from "@tritonjs/protocol";
import { Rollouts, type RolloutsOptions } from "./rollouts.js";

export type { DriftMeasure, InputDrift, SavedSketch } from "./drift-sketch.js";
export { agrees, largestDifference, type OutputComparison } from "./output-agreement.js";
export type { RolloutEvent, RolloutReport, RolloutState } from "./rollout.js";
export type { Rollout } from "./rollout-handle.js";
export {
  isShadow,
  type RolloutKey,
  type RolloutOptions,
  type RolloutStep,
  type RoutedRequest,
  rolloutOfTexts,
  type ShadowOptions,
  type VerdictOptions,
} from "./rollout-options.js";
export type { RolloutAction, Rollouts, RolloutsOptions } from "./rollouts.js";
export type {
  LatencyFigures,
  OutputAgreement,
  RolloutCheck,
  ShadowFigures,
  Verdict,
  VerdictReason,
  VersionFigures,
} from "./verdict.js";

const TYPES = optionTypes<RolloutsOptions>({ directory: "string" });

/**
 * Replaces versions of models by others, little by little. Requests that name no version are divided among both: those of
 * `triton.infer`, of clients, and of ensembles. Parameters of a configuration such as `rollout_to` start the rollout of
 * their model.
 *
 * @throws TritonError INVALID_ARG for options that are not valid
 * @example
 * ```ts
 * const updates = rollouts({ directory: "/var/lib/rollouts" });
 * const triton = new Triton({ extensions: [repository({ modelRepository: "./models" }), updates] });
 * const rollout = await updates.start("resnet", {
 *   from: 1,
 *   to: 2,
 *   key: "header:x-user",
 *   steps: [
 *     { share: 1, forSeconds: 600 },
 *     { share: 25, forSeconds: 3600 },
 *   ],
 *   shadow: { every: 10 },
 * });
 * rollout.onEvent(({ type, reason }) => console.log(type, reason));
 * ```
 */
export function rollouts(options: RolloutsOptions = {}): Rollouts {
  assertOptions("rollouts()", options, TYPES);
  return new Rollouts(options);
}
