import ort from "onnxruntime-node";
import { onnxModel } from "../../examples/onnx-writer/dist/onnx-writer.js";

const WIDTH = 1024;
const ROWS = 64;

/** An ONNX model of matrix products, long enough that one run takes about `targetMs` on one core. */
export async function slowModel(targetMs) {
  const input = new Float32Array(ROWS * WIDTH).fill(0.01);
  const one = await millisecondsOf(chain(4), input);
  const bytes = chain(Math.max(1, Math.round((targetMs / one) * 4)));
  return { bytes, input };
}

function chain(length) {
  const nodes = Array.from({ length }, (_, i) => ({
    op: "MatMul",
    inputs: [i === 0 ? "x" : `h${i - 1}`, "weights"],
    outputs: [i === length - 1 ? "y" : `h${i}`],
  }));
  const dims = [ROWS, WIDTH];
  return onnxModel({
    name: "slow",
    opset: 13,
    inputs: [{ name: "x", elemType: "FLOAT", dims }],
    outputs: [{ name: "y", elemType: "FLOAT", dims }],
    nodes,
    initializers: [
      { name: "weights", dims: [WIDTH, WIDTH], data: new Float32Array(WIDTH * WIDTH).fill(1 / WIDTH) },
    ],
  });
}

async function millisecondsOf(bytes, input) {
  const session = await ort.InferenceSession.create(bytes, { intraOpNumThreads: 1 });
  const run = () => session.run({ x: new ort.Tensor("float32", input, [ROWS, WIDTH]) });
  await run();
  const start = performance.now();
  for (let i = 0; i < 5; i++) await run();
  const ms = (performance.now() - start) / 5;
  await session.release();
  return ms;
}
