import { settledWithin } from "../clock/bounded-wait.js";
import type { Clock } from "../clock/clock.js";
import type { Frontend } from "../frontend/frontend.js";
import type { ModelVersion } from "../model/model-version.js";

/** Drains models and frontends within a time limit, and then unloads the models. */
export async function windDown(
  models: readonly ModelVersion[],
  frontends: readonly Frontend[],
  clock: Clock,
  drainTimeoutMs: number,
): Promise<void> {
  const deadline = clock.now() + drainTimeoutMs;
  // Waits for all models at the same time, because the requests of one may call another.
  const finished = Promise.all(models.map((model) => model.finish()));
  await Promise.all([
    ...frontends.map((frontend) => frontend.stop(drainTimeoutMs)),
    settledWithin(clock, drainTimeoutMs, finished),
  ]);
  const leftMs = Math.max(0, deadline - clock.now());
  await Promise.all(models.map((model) => model.unload(leftMs)));
}
