/*
 * How long does importing a package delay a program? Each import runs in a fresh process, compared with that of
 * fastify. The packages are as published.
 */
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { medianOf, PAIRS, ratioOf, runPairs } from "./support/pairs.mjs";
import { drawRatios } from "./support/plot/draw-ratios.mjs";
import { Published } from "./support/published.mjs";
import { report } from "./support/report.mjs";

const program = fileURLToPath(new URL("./programs/startup.mjs", import.meta.url));
const measure = (...args) =>
  JSON.parse(execFileSync(process.execPath, [program, ...args], { encoding: "utf8" }));

const fastify = createRequire(import.meta.url).resolve("fastify");
const published = new Published(["protocol", "core", "http", "grpc-messages", "grpc", "client"]);
const imports = {
  core: published.entry("core"),
  protocol: published.entry("protocol"),
  "core/onnxruntime": published.entry("core", "./onnxruntime"),
  http: published.entry("http"),
  grpc: published.entry("grpc"),
  "client/http": published.entry("client", "./http"),
  "client/grpc": published.entry("client", "./grpc"),
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
published.remove();
rows["ONNX model, close"] = { ms: medianOf(lives, ({ close }) => close) };

report("startup", {
  rows,
  plots: { "": drawRatios("Time of an import, compared with fastify's (less is better)", ratios) },
});
