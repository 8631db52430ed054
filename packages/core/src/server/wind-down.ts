import { settledWithin } from "../clock/bounded-wait.js";
import type { Clock } from "../clock/clock.js";
import type { Frontend } from "../frontend/frontend.js";
import type { ModelVersion } from "../model/model-version.js";

/** Lets models and frontends finish what they have, for so long at most, and then unloads the models. */
export async function windDown(
  models: readonly ModelVersion[],
  frontends: readonly Frontend[],
  clock: Clock,
  drainTimeoutMs: number,
): Promise<void> {
  const deadline = clock.now() + drainTimeoutMs;
  // All models first: the work of one may need another.
  const finished = Promise.all(models.map((model) => model.finish()));
  await Promise.all([
    ...frontends.map((frontend) => frontend.stop(drainTimeoutMs)),
    settledWithin(clock, drainTimeoutMs, finished),
  ]);
  const leftMs = Math.max(0, deadline - clock.now());
  await Promise.all(models.map((model) => model.unload(leftMs)));
}
