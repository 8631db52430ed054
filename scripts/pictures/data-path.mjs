import { arrow, box, drawing, label } from "./drawing.mjs";

/** The parts that a request passes, from the bytes of a socket to those of the answer. */
export function drawDataPath() {
  const parts = [label(12, 24, "The way of a request", { "font-weight": "bold", "font-size": 14 })];
  const entries = [
    { y: 44, lines: ["HTTP", "headers, JSON, binary"] },
    { y: 112, lines: ["gRPC", "messages, streams"] },
    { y: 180, lines: ["in process", "ndarrays, plain values"] },
  ];
  for (const { y, lines } of entries) {
    parts.push(...box(12, y, 150, 52, lines));
    parts.push(arrow([162, y + 26], [200, 138]));
  }
  const stages = [
    ["InferenceRequest", "made by the decoder"],
    ["model version", "checks, counts, cache"],
    ["scheduler", "queue, priorities, batch"],
  ];
  for (const [i, lines] of stages.entries()) {
    const x = 202 + i * 180;
    parts.push(...box(x, 112, 150, 52, lines));
    if (i > 0) parts.push(arrow([x - 30, 138], [x - 2, 138]));
  }
  parts.push(label(732, 126, "payload", { role: "faint", "font-size": 11, anchor: "middle" }));
  parts.push(arrow([712, 138], [752, 138]));
  parts.push(...box(754, 112, 150, 52, ["instance", "the next idle one"]));
  const runners = [
    { y: 44, lines: ["on this thread", "a callback"] },
    { y: 112, lines: ["worker thread", "ONNX, TensorFlow, module"] },
    { y: 180, lines: ["process", "Python, isolated module"] },
  ];
  for (const { y, lines } of runners) {
    parts.push(arrow([904, 138], [942, y + 26]));
    parts.push(...box(944, y, 170, 52, lines));
  }
  parts.push(arrow([1029, 232], [1029, 282], [908, 282]));
  const back = [
    { x: 754, lines: ["split outputs", "one part for each request"] },
    { x: 562, lines: ["settle once", "answer, error, cancelled"] },
    { x: 202, lines: ["encode", "as the client asked"] },
  ];
  for (const { x, lines } of back) parts.push(...box(x, 256, 152, 52, lines));
  parts.push(arrow([754, 282], [716, 282]));
  parts.push(arrow([562, 282], [358, 282]));
  parts.push(arrow([202, 282], [88, 282], [88, 236]));
  return drawing(
    1128,
    328,
    "The parts of the library that a request passes, from the client and back",
    parts,
  );
}
