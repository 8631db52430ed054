import { drawLoadLines } from "./load-lines.mjs";
import { measured, pointsOf } from "./measured.mjs";

/** What further replicas on one machine add, as the benchmark measured it and as its fitted law goes on. */
export function drawReplicas() {
  const { models, note } = measured("scaling");
  const series = models.flatMap(({ name, rates, predicted }) => {
    const points = pointsOf(rates);
    return [
      { label: name, points },
      { label: `${name}, by the law`, points: [points.at(-1), ...pointsOf(predicted)] },
    ];
  });
  return drawLoadLines({
    title: "Requests a second of several replicas, relative to one, for a model that ...",
    series,
    xLabel: "replicas on the machine",
    yLabel: "times",
    note,
  });
}
