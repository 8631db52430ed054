/*
 * How long does importing a package delay a program? Each import runs in a fresh process, compared with that of
 * fastify. How long does the command of the container image take until its server is ready? The packages are as
 * published.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { onnxModels } from "./support/onnx-models.mjs";
import { medianOf, PAIRS, ratioOf, runPairs } from "./support/pairs.mjs";
import { drawRatios } from "./support/plots.mjs";
import { Published } from "./support/published.mjs";
import { report } from "./support/report.mjs";

const program = fileURLToPath(new URL("./programs/startup.mjs", import.meta.url));
const measure = (...args) =>
  JSON.parse(execFileSync(process.execPath, [program, ...args], { encoding: "utf8" }));

const fastify = createRequire(import.meta.url).resolve("fastify");
/** All packages of the image, each after its dependencies. */
const PACKAGES = ["protocol", "core", "http", "grpc", "client", "backends", "llm", "perf", "cli"];
const published = new Published(PACKAGES);
const imports = {
  core: published.entry("core"),
  protocol: published.entry("protocol"),
  "backends/onnxruntime": published.entry("backends", "./onnxruntime"),
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
const lives = Array.from({ length: PAIRS }, () =>
  measure("life", imports.core, imports["backends/onnxruntime"]),
);
rows["ONNX model, bind to ready"] = { ms: medianOf(lives, ({ ready }) => ready) };
rows["ONNX model, close"] = { ms: medianOf(lives, ({ close }) => close) };

/** A repository with an ONNX model. */
const repository = mkdtempSync(join(tmpdir(), "tritonjs-repository-"));
mkdirSync(join(repository, "empty"));
mkdirSync(join(repository, "models", "conv", "1"), { recursive: true });
writeFileSync(join(repository, "models", "conv", "1", "model.onnx"), onnxModels.convolutions().bytes);

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Milliseconds from the start of the image's command to the first answer that the server is ready. */
async function startToReady(models) {
  const [port, grpc, metrics] = [await freePort(), await freePort(), await freePort()];
  const ports = [`--http-port=${port}`, `--grpc-port=${grpc}`, `--metrics-port=${metrics}`];
  const start = performance.now();
  const command = [
    published.command("cli"),
    "serve",
    `--model-repository=${join(repository, models)}`,
    ...ports,
  ];
  const server = spawn(process.execPath, command, { stdio: "ignore" });
  const ended = once(server, "exit");
  const url = `http://127.0.0.1:${port}/v2/health/ready`;
  for (;;) {
    if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}`);
    const answer = await fetch(url).catch(() => undefined);
    await answer?.arrayBuffer();
    if (answer?.ok) break;
    await sleep(2);
  }
  const ms = performance.now() - start;
  server.kill("SIGKILL");
  await ended;
  return { ms };
}

for (const [models, label] of Object.entries({ empty: "no models", models: "an ONNX model" })) {
  const starts = [];
  for (let i = 0; i < Math.max(PAIRS, 7); i++) starts.push(await startToReady(models));
  rows[`image, ${label}, start to ready`] = { ms: medianOf(starts, ({ ms }) => ms) };
}
published.remove();
rmSync(repository, { recursive: true });

report("startup", {
  rows,
  plots: { "": [drawRatios, "Time of an import, compared with fastify's (less is better)", ratios] },
});
