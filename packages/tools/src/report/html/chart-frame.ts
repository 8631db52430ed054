import type { AxisScale } from "./axis-scale.js";
import { element, escapeText } from "./markup.js";

/** Size of a chart and of the area in it that has the data, in pixels of the drawing. */
export const CHART = { width: 720, height: 300, left: 72, right: 704, top: 16, bottom: 248 } as const;

/** Axes, ticks and titles of a chart around its marks. */
export interface ChartFrame {
  /** What the chart shows, for people who do not see it. */
  readonly label: string;
  readonly x: { readonly scale: AxisScale; readonly title: string };
  readonly y: { readonly scale: AxisScale; readonly title: string };
  /** Names of the series, with the class that colours them. */
  readonly legend?: readonly { readonly name: string; readonly series: number }[];
}

const round = (position: number) => Number(position.toFixed(1));

/** Draws a chart. The marks are markup. */
export function drawChart({ label, x, y, legend = [] }: ChartFrame, marks: string): string {
  const lines = y.scale.ticks.map((tick) => {
    const position = round(y.scale.positionOf(tick));
    const line = { class: "grid", x1: CHART.left, x2: CHART.right, y1: position, y2: position };
    const text = { class: "tick", x: CHART.left - 8, y: position + 4, "text-anchor": "end" };
    return element("line", line) + element("text", text, escapeText(tick));
  });
  const ticks = x.scale.ticks.map((tick) =>
    element(
      "text",
      { class: "tick", x: round(x.scale.positionOf(tick)), y: CHART.bottom + 18, "text-anchor": "middle" },
      escapeText(x.scale.labelOf?.(tick) ?? tick),
    ),
  );
  const middle = (CHART.top + CHART.bottom) / 2;
  const titles = [
    element(
      "text",
      { class: "axis", x: (CHART.left + CHART.right) / 2, y: CHART.bottom + 40, "text-anchor": "middle" },
      escapeText(x.title),
    ),
    element(
      "text",
      { class: "axis", x: 16, y: middle, "text-anchor": "middle", transform: `rotate(-90 16 ${middle})` },
      escapeText(y.title),
    ),
  ];
  const svg = element(
    "svg",
    { viewBox: `0 0 ${CHART.width} ${CHART.height}`, role: "img", "aria-label": label },
    [...lines, ...ticks, ...titles, marks].join(""),
  );
  return `<figure>${svg}${legendOf(legend)}</figure>`;
}

function legendOf(legend: NonNullable<ChartFrame["legend"]>): string {
  if (legend.length < 2) return "";
  const items = legend.map(({ name, series }) => `<li class="series-${series}">${escapeText(name)}</li>`);
  return `<ul class="legend">${items.join("")}</ul>`;
}

/** A point of a chart with a text that appears when the pointer is on it. */
export interface ChartPoint {
  readonly x: number;
  readonly y: number;
  readonly text: string;
  /** Drawn hollow: the value is not to be trusted. */
  readonly doubtful?: boolean;
}

/** Marks of a line with its points. */
export function drawLine(points: readonly ChartPoint[], series: number, x: AxisScale, y: AxisScale): string {
  const placed = points
    .filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y))
    .map((point) => ({ ...point, x: round(x.positionOf(point.x)), y: round(y.positionOf(point.y)) }));
  if (placed.length === 0) return "";
  const path = placed.map((point, i) => `${i === 0 ? "M" : "L"}${point.x} ${point.y}`).join("");
  const dots = placed.map(({ x: cx, y: cy, text, doubtful }) =>
    element(
      "circle",
      { class: doubtful ? "dot hollow" : "dot", cx, cy, r: placed.length > 60 ? 1.5 : 4 },
      element("title", {}, escapeText(text)),
    ),
  );
  return element(
    "g",
    { class: `series-${series}` },
    element("path", { class: "line", d: path }) + dots.join(""),
  );
}
