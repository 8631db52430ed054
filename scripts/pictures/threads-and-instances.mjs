import { element } from "../../bench/support/plots.mjs";
import { bar, drawing, label } from "./drawing.mjs";
import { measured } from "./measured-lines.mjs";

const LOADS = [
  { key: "alone", text: "one batch at a time", role: "one" },
  { key: "busy", text: "enough batches for all instances", role: "two" },
];
const [LEFT, RIGHT, TOP, ROW] = [190, 640, 64, 54];

/** How many rows a second instances and threads of ONNX Runtime compute, as the benchmark measured it. */
export function drawThreadsAndInstances() {
  const { combinations, note } = measured("ort-threads");
  const most = Math.max(...combinations.flatMap(({ alone, busy }) => [alone, busy]));
  const x = (ratio) => LEFT + (ratio / most) * (RIGHT - LEFT);
  const title = "Rows a second, relative to one instance with one thread";
  const parts = [label(12, 24, title, { "font-weight": "bold" })];
  for (const [i, { text, role }] of LOADS.entries()) {
    parts.push(element("rect", { x: LEFT + i * 190, y: 36, width: 12, height: 12, rx: 3, class: role }));
    parts.push(label(LEFT + i * 190 + 18, 46, text, { "font-size": 12 }));
  }
  for (const [row, combination] of combinations.entries()) {
    const { instances, threads } = combination;
    const y = TOP + row * ROW;
    const words = `${counted(instances, "instance")}, ${counted(threads, "thread")}`;
    parts.push(label(LEFT - 10, y + 24, words, { anchor: "end" }));
    for (const [i, { key, role }] of LOADS.entries()) {
      const ratio = combination[key];
      parts.push(...bar(LEFT, y + i * 20, x(ratio) - LEFT, 18, ratio.toFixed(2), role));
    }
  }
  const bottom = TOP + combinations.length * ROW;
  parts.push(label(12, bottom + 12, note, { role: "faint", "font-size": 11 }));
  return drawing(760, bottom + 24, title, parts);
}

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
