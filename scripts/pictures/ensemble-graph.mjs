import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readPrototxt } from "@tritonjs/repository/config";
import { root } from "../run.mjs";
import { arrow, box, drawing, label } from "./drawing.mjs";

const SOURCE = "examples/javascript-ensemble/models/flowers/config.pbtxt";

/** The graph of an ensemble of the examples, read from its configuration. */
export function drawEnsembleGraph() {
  const config = readPrototxt(readFileSync(join(root, SOURCE), "utf8"));
  const { step } = config.ensembleScheduling;
  const depths = new Map(config.input.map(({ name }) => [name, 0]));
  const columns = [];
  for (let open = [...step]; open.length > 0; ) {
    const ready = open.filter(({ inputMap }) =>
      Object.values(inputMap).every((tensor) => depths.has(tensor)),
    );
    if (ready.length === 0) throw new Error(`${SOURCE} has steps that never run`);
    for (const one of ready)
      for (const tensor of Object.values(one.outputMap)) depths.set(tensor, columns.length + 1);
    columns.push(ready);
    open = open.filter((one) => !ready.includes(one));
  }
  const [boxWidth, gap, rowHeight] = [150, 120, 90];
  const places = new Map();
  const parts = [label(12, 24, `The ensemble '${config.name || "flowers"}'`, { "font-weight": "bold" })];
  const rows = Math.max(...columns.map((column) => column.length), config.input.length, config.output.length);
  const middle = 40 + (rows * rowHeight) / 2;
  const yOf = (count, i) => middle + (i - (count - 1) / 2) * rowHeight;
  for (const [i, { name }] of config.input.entries())
    places.set(name, { x: 20 + boxWidth * 0.6, y: yOf(config.input.length, i), text: name });
  for (const { text, y, x } of places.values()) parts.push(label(x - 8, y + 4, text, { anchor: "end" }));
  for (const [column, steps] of columns.entries()) {
    for (const [i, { modelName, inputMap, outputMap }] of steps.entries()) {
      const x = 20 + boxWidth * 0.6 + gap * 0.75 + column * (boxWidth + gap);
      const y = yOf(steps.length, i);
      parts.push(
        ...box(x, y - 28, boxWidth, 56, [modelName, `${Object.keys(inputMap)} → ${Object.keys(outputMap)}`]),
      );
      for (const tensor of Object.values(inputMap)) {
        const from = places.get(tensor);
        parts.push(arrow([from.x, from.y], [x - 2, y]));
        if (from.isStep) {
          parts.push(
            label((from.x + x) / 2, (from.y + y) / 2 - 6, tensor, {
              role: "faint",
              anchor: "middle",
              "font-size": 11,
            }),
          );
        }
      }
      for (const tensor of Object.values(outputMap)) places.set(tensor, { x: x + boxWidth, y, isStep: true });
    }
  }
  const right = 20 + boxWidth * 0.6 + gap * 0.75 + columns.length * (boxWidth + gap) - gap * 0.3;
  const bottom = middle + (rows * rowHeight) / 2 - 12;
  for (const [i, { name }] of config.output.entries()) {
    const from = places.get(name);
    // A tensor that a later step also reads passes below the boxes of the steps.
    const isLast = from.x > right - gap;
    const y = isLast ? yOf(config.output.length, i) : bottom;
    const turn = from.x + gap / 5;
    const way = isLast
      ? []
      : [
          [turn, from.y],
          [turn, bottom],
        ];
    parts.push(arrow([from.x, from.y], ...way, [right - 6, y]));
    parts.push(label(right, y + 4, name));
  }
  return drawing(
    right + 110,
    middle + (rows * rowHeight) / 2 + 10,
    "The models of an ensemble and the tensors between them",
    parts,
  );
}
