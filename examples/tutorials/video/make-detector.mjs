import { writeFileSync } from "node:fs";
import { onnxModel } from "../../onnx-writer/dist/onnx-writer.js";

/*
 * Writes detector.onnx: finds the bright object of a grey frame of any size. It averages 3 x 3 pixels, and takes the
 * first and last column and row with a bright average.
 */

const THRESHOLD = 0.6 * 255;
const scalar = (name, value) => ({ name, dims: [], data: Float32Array.of(value) });
const edge = (axis, from, isLast, to) => ({
  op: "ArgMax",
  inputs: [from],
  outputs: [to],
  attributes: { axis: { int: axis }, keepdims: { int: 1 }, select_last_index: { int: isLast ? 1 : 0 } },
});
const most = (from, axes, to) => ({
  op: "ReduceMax",
  inputs: [from],
  outputs: [to],
  attributes: { axes: { ints: axes }, keepdims: { int: 0 } },
});
const cast = (from, to, type) => ({
  op: "Cast",
  inputs: [from],
  outputs: [to],
  attributes: { to: { int: type } },
});

/** Numbers of ONNX's element types. */
const [FLOAT, INT32] = [1, 6];

const model = onnxModel({
  name: "detector",
  opset: 17,
  inputs: [{ name: "frame", elemType: "UINT8", dims: ["batch", "height", "width"] }],
  outputs: [
    { name: "box", elemType: "INT32", dims: ["batch", 4] },
    { name: "score", elemType: "FLOAT", dims: ["batch", 1] },
  ],
  initializers: [
    { name: "channel", dims: [1], data: BigInt64Array.of(1n) },
    scalar("threshold", THRESHOLD),
    scalar("white", 255),
  ],
  nodes: [
    cast("frame", "grey", FLOAT),
    { op: "Unsqueeze", inputs: ["grey", "channel"], outputs: ["planes"] },
    {
      op: "AveragePool",
      inputs: ["planes"],
      outputs: ["smooth"],
      attributes: {
        kernel_shape: { ints: [3, 3] },
        pads: { ints: [1, 1, 1, 1] },
        count_include_pad: { int: 1 },
      },
    },
    { op: "Greater", inputs: ["smooth", "threshold"], outputs: ["isBright"] },
    cast("isBright", "bright", FLOAT),
    most("bright", [1, 2], "columns"),
    most("bright", [1, 3], "rows"),
    edge(1, "columns", false, "left"),
    edge(1, "rows", false, "top"),
    edge(1, "columns", true, "right"),
    edge(1, "rows", true, "bottom"),
    {
      op: "Concat",
      inputs: ["left", "top", "right", "bottom"],
      outputs: ["corners"],
      attributes: { axis: { int: 1 } },
    },
    cast("corners", "box", INT32),
    most("smooth", [1, 2], "brightest"),
    {
      op: "ReduceMax",
      inputs: ["brightest"],
      outputs: ["peak"],
      attributes: { axes: { ints: [1] }, keepdims: { int: 1 } },
    },
    { op: "Div", inputs: ["peak", "white"], outputs: ["score"] },
  ],
});

writeFileSync(process.argv[2] ?? new URL("./detector.onnx", import.meta.url), model);
