import { readFileSync } from "node:fs";
import { drawLoadLines } from "./drawing.mjs";

/** The figures that a benchmark saved for its pictures, with the machine they were measured on as `note`. */
export function measured(bench) {
  const file = new URL(`./measured/${bench}.json`, import.meta.url);
  const { machine, ...figures } = JSON.parse(readFileSync(file, "utf8"));
  return { ...figures, note: `npm run bench -- ${bench}, on ${machine}` };
}

/** Points of a line from an object of y by x. */
export const pointsOf = (line) => Object.entries(line).map(([x, y]) => [Number(x), y]);

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

const seriesOf = (lines) => Object.entries(lines).map(([label, line]) => ({ label, points: pointsOf(line) }));

const sizeText = (bytes) =>
  bytes < 1024 ? `${bytes} B` : bytes < 1_048_576 ? `${bytes / 1024} KiB` : `${bytes / 1_048_576} MiB`;

/** What a call of an instance costs by the size of its tensor, as the benchmark measured it. */
export function drawIsolationCost() {
  const { cost, note } = measured("isolation");
  return drawLoadLines({
    title: "CPU time of a call, for a model that returns its input",
    series: seriesOf(cost),
    xLabel: "size of the tensor",
    yLabel: "microseconds",
    xText: sizeText,
    note,
  });
}

/** How late timers fire by the time that a model computes, as the benchmark measured it. */
export function drawIsolationDelay() {
  const { delay, note } = measured("isolation");
  return drawLoadLines({
    title: "How late a timer fires (median), while batches run one after the other",
    series: seriesOf(delay),
    xLabel: "milliseconds that a batch computes",
    yLabel: "milliseconds",
    note,
  });
}
