import type { InferenceService } from "@tritonjs/core/frontend";
import type { Sample, SampledModel } from "../sample/sampler.js";

/** Rows that a summary has at most. */
const MOST_ROWS = 1000;

/** What every viewer gets in each interval: the server, and a row for each model version. */
export function summaryOf(service: InferenceService, sample: Sample): object {
  const { at, models, process } = sample;
  return {
    at,
    ready: service.isReady(),
    process,
    cache: service.inspector?.cacheUsage ?? null,
    modelCount: models.length,
    models: models.slice(0, MOST_ROWS).map(rowOf),
  };
}

function rowOf({ model, samples }: SampledModel): object {
  const { name, namespace, version, state, reason, isEnsemble, bound, counters } = model;
  return {
    ...{ name, namespace, version, state, reason, isEnsemble, bound },
    counts: counters && {
      succeeded: counters.succeeded,
      failed: counters.failed,
      instances: counters.instances,
      healthyInstances: counters.healthyInstances,
      busyInstances: counters.busyInstances,
    },
    point: samples?.last ?? null,
  };
}
