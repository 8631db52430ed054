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
