/* How long until a program that uses a package can begin? Each import in a fresh process, against that of fastify. */
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "../scripts/run.mjs";
import { medianOf, PAIRS, ratioOf, runPairs } from "./support/pairs.mjs";
import { drawRatios } from "./support/plot/draw-ratios.mjs";
import { report } from "./support/report.mjs";

const program = fileURLToPath(new URL("./programs/startup.mjs", import.meta.url));
const measure = (...args) =>
  JSON.parse(execFileSync(process.execPath, [program, ...args], { encoding: "utf8" }));
const dist = (name, file) => join(root, "packages", name, "dist", file);

const fastify = createRequire(import.meta.url).resolve("fastify");
const imports = {
  core: dist("core", "index.js"),
  "core/tensor": dist("core", "tensor/index.js"),
  "core/onnxruntime": dist("core", "backends/onnxruntime/index.js"),
  http: dist("http", "index.js"),
  "http/client": dist("http", "client/index.js"),
  grpc: dist("grpc", "index.js"),
  "grpc/client": dist("grpc", "client/index.js"),
};
const targets = { core: 1 };

const rows = {};
const ratios = [];
for (const [name, path] of Object.entries(imports)) {
  const time = (file) => async () => ({ ms: measure("import", file).import });
  const runs = await runPairs(time(path), time(fastify), { pairs: Math.max(PAIRS, 7) });
  const { ratios: all, ...ratio } = ratioOf(runs, ({ ms }) => ms);
  const label = `import of ${name}`;
  rows[label] = {
    ms: medianOf(runs.ours, ({ ms }) => ms),
    "ms fastify": medianOf(runs.reference, ({ ms }) => ms),
    ...ratio,
  };
  ratios.push({ label, ...ratio, target: targets[name] });
}
const lives = Array.from({ length: PAIRS }, () => measure("life", imports.core, imports["core/onnxruntime"]));
rows["ONNX model, bind to ready"] = { ms: medianOf(lives, ({ ready }) => ready) };
rows["ONNX model, close"] = { ms: medianOf(lives, ({ close }) => close) };

report("startup", {
  rows,
  plots: { "": drawRatios("Time of an import, compared with fastify's (less is better)", ratios) },
});
