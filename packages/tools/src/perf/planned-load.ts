import type { DataSet } from "../data/data-set.js";
import { invalidOption } from "../data/invalid-option.js";
import type { TestedModel } from "../data/tested-model.js";
import { checkLevel } from "../load/check-level.js";
import { requestsOfLevel } from "../load/level-requests.js";
import type { LoadLevel } from "../load/load-level.js";
import type { LoadPlan } from "../measure/load-plan.js";
import type { PerfSettings } from "./perf-settings.js";

/**
 * The plan of the settings, or of the data.
 *
 * @throws TritonError INVALID_ARG for a model or data that the load does not fit
 */
export function plannedLoad(settings: PerfSettings, data: DataSet, model: TestedModel | undefined): LoadPlan {
  const plan = settings.plan ?? { kind: "single", level: levelOf(data, settings) };
  if (plan.kind !== "single") return plan;
  checkLevel(plan.level);
  const isPeriodic = plan.level.mode === "periodic_concurrency";
  if (isPeriodic && model !== undefined && (!model.decoupled || model.isSequenceModel))
    throw invalidOption(
      `--periodic-concurrency-range: expected a decoupled model without sequences, '${model.name}' is not`,
    );
  return plan;
}

/** Requests of a plan with a level that ends by itself. */
export function requestsOfPlan(plan: LoadPlan): number | undefined {
  return plan.kind === "single" ? requestsOfLevel(plan.level) : undefined;
}

function levelOf(data: DataSet, { sessionConcurrency: value }: PerfSettings): LoadLevel {
  if (value === undefined) return { mode: "fixed_schedule", timestampsMs: data.timestampsMs ?? [] };
  const sessions = (data.kind === "openai" && data.sessions) || [];
  return { mode: "session_concurrency", value, sessions };
}
