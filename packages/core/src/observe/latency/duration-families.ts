import type { CollectedFamily, Series } from "../collected-family.js";
import type { MeteredModel } from "../metrics.js";
import { DURATION_BOUNDS, type DurationHistogram } from "./duration-histogram.js";

/**
 * Histograms of durations, which every model has. They are specific to this library: Triton's histogram is off by
 * default, and its smallest bound is 100 milliseconds.
 */
export function durationFamilies(models: () => readonly MeteredModel[]): CollectedFamily[] {
  return [
    family(
      "tritonjs_request_duration_seconds",
      "Time from the arrival of a successful request to its answer, in seconds (includes cached requests)",
      models,
      ({ statistics }) => statistics.requestDurations,
    ),
    family(
      "tritonjs_queue_duration_seconds",
      "Time that a successful request waited before it was executed, in seconds (includes cached requests)",
      models,
      ({ statistics }) => statistics.queueDurations,
    ),
  ];
}

function family(
  name: string,
  help: string,
  models: () => readonly MeteredModel[],
  durations: (model: MeteredModel) => DurationHistogram,
): CollectedFamily {
  const collect = () => models().flatMap((model) => series(name, model.labels, durations(model)));
  return { name, help, type: "histogram", collect };
}

function series(name: string, labels: Series["labels"], durations: DurationHistogram): Series[] {
  const counts = durations.cumulative();
  const { exemplars } = durations;
  return [
    ...counts.map((value, index) => ({
      metricName: `${name}_bucket`,
      labels: { ...labels, le: DURATION_BOUNDS[index] ?? "+Inf" },
      value,
      exemplar: exemplars[index],
    })),
    { metricName: `${name}_sum`, labels, value: durations.sumMs / 1000 },
    { metricName: `${name}_count`, labels, value: counts.at(-1)! },
  ];
}
