import { element, text } from "../../bench/support/plots.mjs";

/**
 * Colors of the pictures, by role. A browser that prefers dark pages gets the second one. Pictures have a background of
 * their own, so they can be read on a page of either kind.
 */
const ROLES = {
  paper: ["#ffffff", "#16181d"],
  ink: ["#1f2937", "#e5e7eb"],
  faint: ["#6b7280", "#9ca3af"],
  rule: ["#d1d5db", "#4b5563"],
  box: ["#eef2ff", "#1e293b"],
  edge: ["#4f6bd8", "#7f9cf5"],
  one: ["#bfdbfe", "#1d4ed8"],
  two: ["#bbf7d0", "#15803d"],
  three: ["#fde68a", "#a16207"],
  four: ["#fbcfe8", "#be185d"],
  "series-two": ["#d97706", "#f59e0b"],
  "series-three": ["#059669", "#34d399"],
  "series-four": ["#9333ea", "#c084fc"],
};

const styles = (which) =>
  Object.entries(ROLES)
    .map(
      ([role, colors]) => `.${role}{fill:${colors[which]}}.${role}-line{stroke:${colors[which]};fill:none}`,
    )
    .join("");

/** A picture with its title for readers who do not see it. */
export function drawing(width, height, title, parts) {
  const frame = {
    xmlns: "http://www.w3.org/2000/svg",
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "font-family": "sans-serif",
    "font-size": 13,
  };
  const style = `<style>${styles(0)}@media (prefers-color-scheme: dark){${styles(1)}}</style>`;
  const arrow =
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">' +
    '<path d="M0 0L8 4L0 8z" class="faint"/></marker></defs>';
  const paper = element("rect", { width, height, class: "paper" });
  const content = [element("title", {}, title), style, arrow, paper, ...parts].join("\n");
  return `${element("svg", frame, `\n${content}\n`)}\n`;
}

/** Text, whose color is that of a role. */
export const label = (x, y, content, { role = "ink", anchor = "start", ...more } = {}) =>
  text(x, y, content, { fill: undefined, class: role, "text-anchor": anchor, ...more }).replace(
    ' fill="undefined"',
    "",
  );

/** A box with lines of text in its middle, the first one bold. */
export function box(x, y, width, height, lines, role = "box") {
  const first = y + height / 2 - (lines.length - 1) * 8 + 4;
  return [
    element("rect", { x, y, width, height, rx: 5, class: role }),
    element("rect", { x, y, width, height, rx: 5, class: "edge-line" }),
    ...lines.map((one, i) =>
      label(x + width / 2, first + i * 16, one, {
        anchor: "middle",
        ...(i === 0 ? { "font-weight": "bold" } : { role: "faint", "font-size": 11 }),
      }),
    ),
  ];
}

/** An arrow through points, each `[x, y]`. */
export const arrow = (...points) =>
  element("polyline", {
    points: points.map(String).join(" "),
    class: "faint-line",
    "marker-end": "url(#arrow)",
  });

/** A bar in time with its text. */
export function bar(x, y, width, height, content, role) {
  return [
    element("rect", { x, y, width: Math.max(1, width), height, rx: 3, class: role }),
    label(x + width / 2, y + height / 2 + 4, content, { anchor: "middle", "font-size": 11 }),
  ];
}

/** A time axis with a rule at each step, in milliseconds. */
export function timeAxis({ left, right, top, bottom, endMs, stepMs }) {
  const x = (ms) => left + (ms / endMs) * (right - left);
  const parts = [];
  for (let ms = 0; ms <= endMs; ms += stepMs) {
    parts.push(element("line", { x1: x(ms), x2: x(ms), y1: top, y2: bottom, class: "rule-line" }));
    parts.push(label(x(ms), bottom + 16, `${ms} ms`, { role: "faint", anchor: "middle", "font-size": 11 }));
  }
  return { x, parts };
}

const [WIDTH, HEIGHT] = [760, 340];
const AREA = { left: 60, right: 560, top: 50, bottom: 290 };
const STEPS = [
  0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000,
  100_000,
];
const SERIES_ROLES = ["edge", "series-two", "series-three", "series-four"];

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
    parts.push(element("polyline", { points: places, class: `${SERIES_ROLES[i]}-line`, "stroke-width": 2 }));
    for (const point of points)
      parts.push(element("circle", { cx: x(point[0]), cy: y(point[1]), r: 3.5, class: SERIES_ROLES[i] }));
    parts.push(
      element("circle", { cx: AREA.right + 26, cy: AREA.top + 10 + i * 22, r: 5, class: SERIES_ROLES[i] }),
    );
    parts.push(label(AREA.right + 38, AREA.top + 14 + i * 22, name, { "font-size": 12 }));
  }
  if (note !== "") parts.push(label(12, HEIGHT + 6, note, { role: "faint", "font-size": 11 }));
  return drawing(WIDTH, note === "" ? HEIGHT : HEIGHT + 18, title, parts);
}
