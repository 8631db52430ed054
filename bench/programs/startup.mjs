/* Prints how long one operation takes in a fresh process: importing a file, or an ONNX model from bind to close. */
import { pathToFileURL } from "node:url";

const [what, ...paths] = process.argv.slice(2);
const importPath = (path) => import(pathToFileURL(path).href);
const start = performance.now();
const times = {};
if (what === "import") {
  await importPath(paths[0]);
  times.import = performance.now() - start;
} else {
  const [{ Triton }, { onnxruntime }] = [await importPath(paths[0]), await importPath(paths[1])];
  const { onnxModels } = await import("../support/onnx-models.mjs");
  const { bytes } = onnxModels.convolutions();
  const bindAt = performance.now();
  const triton = new Triton();
  const model = triton.bind({ modelName: "conv", inferFunc: onnxruntime({ model: bytes }) });
  await model.ready();
  times.ready = performance.now() - bindAt;
  const closeAt = performance.now();
  await triton.close();
  times.close = performance.now() - closeAt;
}
process.stdout.write(JSON.stringify(times));
