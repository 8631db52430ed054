/* The few parts of SVG that the plots need. */

export const colors = ["#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#475569"];

const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => escapes[sign]);

const at = (value) => (typeof value === "number" ? Math.round(value * 10) / 10 : escaped(value));

export function element(name, attributes, content = "") {
  const pairs = Object.entries(attributes).map(([key, value]) => ` ${key}="${at(value)}"`);
  return `<${name}${pairs.join("")}>${content}</${name}>`;
}

export const text = (x, y, content, attributes = {}) =>
  element("text", { x, y, fill: "#1f2937", ...attributes }, escaped(content));

export const line = (x1, y1, x2, y2, attributes = {}) =>
  element("line", { x1, y1, x2, y2, stroke: "#d1d5db", ...attributes });

export function picture(width, height, parts) {
  const frame = {
    xmlns: "http://www.w3.org/2000/svg",
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    "font-family": "sans-serif",
    "font-size": 12,
  };
  const paper = element("rect", { width, height, fill: "white" });
  return `${element("svg", frame, `\n${[paper, ...parts].join("\n")}\n`)}\n`;
}

/** Round numbers from 0 to at least `most`, about six of them. */
export function ticksUpTo(most) {
  const rough = most / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  const count = Math.ceil(most / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(6)));
}

const [WIDTH, HEIGHT] = [760, 360];
const AREA = { left: 70, right: 740, top: 60, bottom: 310 };

/**
 * Draws lines over a common axis.
 *
 * @param series `{ label, points: [[x, y], ...] }` each
 * @param options.xLog whether each step of the x axis doubles
 */
export function drawLines(title, series, { xLabel, yLabel, xLog = false }) {
  const points = series.flatMap((one) => one.points);
  const xs = [...new Set(points.map(([x]) => x))].sort((a, b) => a - b);
  const yTicks = ticksUpTo(Math.max(...points.map(([, y]) => y)));
  const place = xLog ? Math.log2 : Number;
  const [first, last] = [place(xs[0]), place(xs.at(-1))];
  const x = (value) => AREA.left + ((place(value) - first) / (last - first || 1)) * (AREA.right - AREA.left);
  const y = (value) => AREA.bottom - (value / yTicks.at(-1)) * (AREA.bottom - AREA.top);
  const parts = [text(12, 22, title, { "font-weight": "bold", "font-size": 14 })];
  for (const tick of yTicks) {
    parts.push(line(AREA.left, y(tick), AREA.right, y(tick)));
    parts.push(text(AREA.left - 8, y(tick) + 4, tick, { "text-anchor": "end" }));
  }
  for (const tick of xs) parts.push(text(x(tick), AREA.bottom + 18, tick, { "text-anchor": "middle" }));
  parts.push(text((AREA.left + AREA.right) / 2, HEIGHT - 10, xLabel, { "text-anchor": "middle" }));
  parts.push(text(AREA.left, AREA.top - 10, yLabel, { fill: "#6b7280" }));
  series.forEach((one, i) => {
    const color = colors[i % colors.length];
    const path = one.points.map((point) => `${Math.round(x(point[0]))},${Math.round(y(point[1]))}`).join(" ");
    parts.push(element("polyline", { points: path, fill: "none", stroke: color, "stroke-width": 2 }));
    for (const point of one.points) {
      parts.push(element("circle", { cx: x(point[0]), cy: y(point[1]), r: 3.5, fill: color }));
    }
    const legend = AREA.left + 150 + i * 150;
    parts.push(element("circle", { cx: legend, cy: AREA.top - 14, r: 5, fill: color }));
    parts.push(text(legend + 10, AREA.top - 10, one.label));
  });
  return picture(WIDTH, HEIGHT, parts);
}

const ROW = 26;
const LEFT = 230;
const TOP = 44;

/**
 * Draws a row for each ratio: the median as a dot, the spread as a line, the target as a mark.
 *
 * @param ratios `{ label, ratio, least, most, target? }` each
 */
export function drawRatios(title, ratios) {
  const values = ratios.flatMap(({ most, target = 0 }) => [most, target, 1]);
  const ticks = ticksUpTo(Math.max(...values));
  const x = (value) => LEFT + (value / ticks.at(-1)) * (WIDTH - LEFT - 30);
  const bottom = TOP + ratios.length * ROW;
  const parts = [text(12, 22, title, { "font-weight": "bold", "font-size": 14 })];
  for (const tick of ticks) {
    parts.push(line(x(tick), TOP - 8, x(tick), bottom));
    parts.push(text(x(tick), bottom + 16, tick, { "text-anchor": "middle" }));
  }
  parts.push(line(x(1), TOP - 8, x(1), bottom, { stroke: "#6b7280", "stroke-width": 1.5 }));
  ratios.forEach(({ label, ratio, least, most, target }, row) => {
    const y = TOP + row * ROW + ROW / 2;
    parts.push(text(LEFT - 12, y + 4, label, { "text-anchor": "end" }));
    parts.push(line(x(least), y, x(most), y, { stroke: colors[0], "stroke-width": 3, opacity: 0.45 }));
    parts.push(element("circle", { cx: x(ratio), cy: y, r: 5, fill: colors[0] }));
    if (target === undefined) return;
    parts.push(line(x(target), y - 9, x(target), y + 9, { stroke: colors[4], "stroke-width": 2 }));
  });
  if (ratios.some(({ target }) => target !== undefined)) {
    parts.push(text(WIDTH - 20, 22, "red: to be reached", { "text-anchor": "end", fill: colors[4] }));
  }
  return picture(WIDTH, bottom + 28, parts);
}
