import { element } from "../../bench/support/plots.mjs";
import { bar, drawing, label } from "./drawing.mjs";
import { measured } from "./measured-lines.mjs";

const WAYS = [
  { key: "unbatched", text: "session.run for each request, in a route", role: "three" },
  { key: "batched", text: "bound with tritonjs: dynamic batches in a worker", role: "two" },
];
/** Models of the benchmark by the layers that take most of their time. */
const NAMES = {
  mlp: "dense layers",
  conv: "convolutions, a dense layer",
  convolutions: "convolutions alone",
};
const [LEFT, RIGHT, TOP, ROW] = [200, 700, 64, 54];

/** How many requests a second the same ONNX model answers without and with batching, as the benchmark measured it. */
export function drawRateByBatching() {
  const { models, note } = measured("onnx");
  const most = Math.max(...models.flatMap(({ unbatched, batched }) => [unbatched, batched]));
  const title = "Requests a second over HTTP, from 64 clients at a time";
  const parts = [label(12, 24, title, { "font-weight": "bold" })];
  for (const [i, { text, role }] of WAYS.entries()) {
    parts.push(element("rect", { x: 12 + i * 300, y: 36, width: 12, height: 12, rx: 3, class: role }));
    parts.push(label(30 + i * 300, 46, text, { "font-size": 12 }));
  }
  for (const [row, model] of models.entries()) {
    const y = TOP + row * ROW;
    const times = (model.batched / model.unbatched).toFixed(1);
    parts.push(label(LEFT - 10, y + 16, NAMES[model.name], { anchor: "end" }));
    parts.push(label(LEFT - 10, y + 32, `${times} times`, { anchor: "end", role: "faint", "font-size": 11 }));
    for (const [i, { key, role }] of WAYS.entries()) {
      const width = (model[key] / most) * (RIGHT - LEFT);
      parts.push(...bar(LEFT, y + i * 20, width, 18, String(Math.round(model[key])), role));
    }
  }
  const bottom = TOP + models.length * ROW;
  parts.push(label(12, bottom + 12, note, { role: "faint", "font-size": 11 }));
  return drawing(760, bottom + 24, title, parts);
}
