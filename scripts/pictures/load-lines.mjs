import { element } from "../../bench/support/plot/svg.mjs";
import { drawing, label } from "./drawing.mjs";

const [WIDTH, HEIGHT] = [760, 340];
const AREA = { left: 60, right: 560, top: 50, bottom: 290 };
const STEPS = [
  0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000,
  100_000,
];
const ROLES = ["edge", "series-two", "series-three", "series-four"];

/**
 * Lines over axes of which each step doubles or so.
 *
 * @param series up to four, each `{ label, points: [[x, y], ...] }`
 * @param xText text of a value on the x axis
 * @param note the conditions of a measurement
 */
export function drawLoadLines({ title, series, xLabel, yLabel, xText = Math.round, note = "" }) {
  const xs = [...new Set(series.flatMap(({ points }) => points.map(([x]) => x)))].sort((a, b) => a - b);
  const ys = series.flatMap(({ points }) => points.map(([, y]) => y));
  const ticks = STEPS.filter(
    (_, i) => STEPS[i + 1] > Math.min(...ys) && (STEPS[i - 1] ?? 0) < Math.max(...ys),
  );
  const share = (value, from, to) => Math.log(value / from) / Math.log(to / from);
  const x = (value) => AREA.left + share(value, xs[0], xs.at(-1)) * (AREA.right - AREA.left);
  const y = (value) => AREA.bottom - share(value, ticks[0], ticks.at(-1)) * (AREA.bottom - AREA.top);
  const parts = [label(12, 24, title, { "font-weight": "bold" })];
  for (const tick of ticks) {
    parts.push(
      element("line", { x1: AREA.left, x2: AREA.right, y1: y(tick), y2: y(tick), class: "rule-line" }),
    );
    parts.push(label(AREA.left - 8, y(tick) + 4, tick, { anchor: "end", role: "faint", "font-size": 11 }));
  }
  for (const value of xs) {
    const options = { anchor: "middle", role: "faint", "font-size": 11 };
    parts.push(label(x(value), AREA.bottom + 18, xText(value), options));
  }
  parts.push(label((AREA.left + AREA.right) / 2, HEIGHT - 14, xLabel, { anchor: "middle", role: "faint" }));
  parts.push(label(AREA.left, AREA.top - 8, yLabel, { role: "faint", "font-size": 11 }));
  for (const [i, { label: name, points }] of series.entries()) {
    const places = points.map((point) => `${Math.round(x(point[0]))},${Math.round(y(point[1]))}`).join(" ");
    parts.push(element("polyline", { points: places, class: `${ROLES[i]}-line`, "stroke-width": 2 }));
    for (const point of points)
      parts.push(element("circle", { cx: x(point[0]), cy: y(point[1]), r: 3.5, class: ROLES[i] }));
    parts.push(element("circle", { cx: AREA.right + 26, cy: AREA.top + 10 + i * 22, r: 5, class: ROLES[i] }));
    parts.push(label(AREA.right + 38, AREA.top + 14 + i * 22, name, { "font-size": 12 }));
  }
  if (note !== "") parts.push(label(12, HEIGHT + 6, note, { role: "faint", "font-size": 11 }));
  return drawing(WIDTH, note === "" ? HEIGHT : HEIGHT + 18, title, parts);
}
