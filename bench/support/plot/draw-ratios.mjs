import { colors, element, line, picture, text, ticksUpTo } from "./svg.mjs";

const ROW = 26;
const LEFT = 230;
const WIDTH = 760;
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
