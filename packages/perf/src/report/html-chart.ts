import { createHash } from "node:crypto";

/**
 * A whole HTML page. It has no script, loads nothing, and its policy allows no more than its own style sheet.
 *
 * @param body markup
 */
export function htmlPage(title: string, body: string): string {
  const style = createHash("sha256").update(REPORT_STYLE).digest("base64");
  const policy = `default-src 'none'; style-src 'sha256-${style}'; base-uri 'none'; form-action 'none'`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escapeText(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeText(title)}</title>
<style>${REPORT_STYLE}</style>
</head>
<body>
<main>
<h1>${escapeText(title)}</h1>
${body}
</main>
</body>
</html>
`;
}

export function htmlTable(
  header: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const head = header.map((cell) => `<th scope="col">${escapeText(cell)}</th>`).join("");
  const body = rows
    .map((row) => `<tr>${row.map((cell) => `<td>${escapeText(cell)}</td>`).join("")}</tr>`)
    .join("\n");
  // Focusable, so that the keyboard can scroll a wide table.
  return `<div class="scroll" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>\n${body}\n</tbody></table></div>`;
}

/** Size of a chart and of the area in it that has the data, in pixels of the drawing. */
export const CHART = { width: 720, height: 300, left: 72, right: 704, top: 16, bottom: 248 } as const;

/** Axes, ticks and titles of a chart around its marks. */
interface ChartFrame {
  readonly label: string;
  readonly x: { readonly scale: AxisScale; readonly title: string };
  readonly y: { readonly scale: AxisScale; readonly title: string };
  readonly legend?: readonly { readonly name: string; readonly series: number }[];
}

const round = (position: number) => Number(position.toFixed(1));

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

export interface AxisScale {
  readonly ticks: readonly number[];
  positionOf(value: number): number;
  /** Text of a tick. @default the number */
  labelOf?(tick: number): string;
}

/** Steps of ticks that people read easily. */
const STEPS = [1, 2, 2.5, 5, 10];

/** A scale whose ends are ticks. Values that are not finite are left out. */
export function axisScale(values: readonly number[], from: number, to: number, tickCount = 5): AxisScale {
  const known = values.filter(Number.isFinite);
  const low = Math.min(0, ...known);
  const high = Math.max(low, ...known);
  const step = niceStep((high - low || 1) / tickCount);
  const first = Math.floor(low / step);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  const ticks = Array.from({ length: last - first + 1 }, (_, i) =>
    Number(((first + i) * step).toPrecision(12)),
  );
  const span = (last - first) * step;
  return { ticks, positionOf: (value) => from + ((value - first * step) / span) * (to - from) };
}

function niceStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  return (STEPS.find((step) => step * power >= rough - 1e-12) ?? 10) * power;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Text for HTML and SVG, as content or as the value of an attribute. Control characters, which XML forbids, become spaces. */
export function escapeText(text: string | number): string {
  return String(text)
    .replace(/[&<>"']/g, (character) => ENTITIES[character]!)
    .replace(/\p{Cc}/gu, " ");
}

export function element(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  content = "",
): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeText(value)}"`);
  return `<${name}${written.join("")}>${content}</${name}>`;
}

/** The style sheet of the report. Colours follow the reader's choice of light or dark. */
export const REPORT_STYLE = `
:root { color-scheme: light dark; --text: #1c2024; --quiet: #60646c; --ground: #fff; --line: #d9d9e0; --panel: #f7f7f8;
  --s1: #2563eb; --s2: #b45309; --s3: #dc2626; --s4: #059669; --s5: #7c3aed; --s6: #0891b2; --s7: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --text: #edeef0; --quiet: #b0b4ba; --ground: #18191b; --line: #393a40;
  --panel: #212225; --s1: #70a5ff; --s2: #f5b54a; --s3: #ff7b72; --s4: #4ade80; --s5: #b794f6; --s6: #4cc9e0; --s7: #8b8d98; } }
body { margin: 0 auto; padding: 24px; max-width: 1080px; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 24px; margin: 0; } h2 { font-size: 18px; margin: 32px 0 8px; }
p { color: var(--quiet); margin: 4px 0; } code { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 10px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--quiet); font-weight: 500; } th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; } td:last-child { white-space: normal; min-width: 7em; }
figure { margin: 8px 0; padding: 8px; background: var(--panel); border-radius: 8px; } svg { width: 100%; height: auto; }
.grid { stroke: var(--line); } .tick, .axis { fill: var(--quiet); font-size: 12px; }
.line { fill: none; stroke: currentColor; stroke-width: 2; } .dot { fill: currentColor; stroke: currentColor; stroke-width: 2; }
.hollow { fill: var(--panel); } .bar { fill: currentColor; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; list-style: none; margin: 0; padding: 0 8px; font-size: 13px; }
.legend li { color: var(--text); } .legend li::before { content: "\\25CF\\00A0"; color: var(--series); }
.series-1 { --series: var(--s1); } .series-2 { --series: var(--s2); } .series-3 { --series: var(--s3); } .series-4 { --series: var(--s4); }
.series-5 { --series: var(--s5); } .series-6 { --series: var(--s6); } .series-7 { --series: var(--s7); }
svg [class*="series-"] { color: var(--series); }
.warning { color: var(--s2); }
`;
