import { colors, element, line, picture, text, ticksUpTo } from "./svg.mjs";

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
