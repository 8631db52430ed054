import { drawLoadLines } from "./load-lines.mjs";
import { measured, pointsOf } from "./measured.mjs";

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
