/*
 * The engines of ONNX models: memory of a large model with several instances and of many small models, and the latency
 * of one request at a time, in process and over HTTP, compared with `session.run` on the main thread.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { binaryBody, httpLoad } from "./support/load.mjs";
import { largeModel, onnxModels } from "./support/onnx-models.mjs";
import { median, medianOf, PAIRS, SECONDS, short } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const SMALL_MODELS = 100;
const ENGINES = ["worker", "native"];
/** Requests of one measurement. */
const REQUESTS = { tiny: 2000, mlp: 100 };

const rows = {};
const folder = mkdtempSync(join(tmpdir(), "tritonjs-bench-"));
const saved = (name, { bytes, shape }) => {
  const file = join(folder, `${name}.onnx`);
  writeFileSync(file, bytes);
  return { file, shape };
};

/** Bytes that the models take, after a request to each. */
async function memoryOf(engine, { file, shape }, models, instances) {
  const empty = await startProgram("onnx-engine", { engine, files: [], shape });
  const program = await startProgram("onnx-engine", {
    engine,
    files: Array.from({ length: models }, () => file),
    instances,
    shape,
  });
  await program.call("run", models * instances);
  const [used, base] = [(await program.call("memory")).rss, (await empty.call("memory")).rss];
  await Promise.all([program.stop(), empty.stop()]);
  return { used, added: used - base };
}

try {
  const large = saved("large", largeModel());
  const tiny = saved("tiny", onnxModels.tiny());
  const mlp = saved("mlp", onnxModels.mlp());
  const mebibytes = (bytes) => Math.round(bytes / 2 ** 20);
  for (const engine of ENGINES) {
    const [one, four] = [await memoryOf(engine, large, 1, 1), await memoryOf(engine, large, 1, 4)];
    const many = await memoryOf(engine, tiny, SMALL_MODELS, 1);
    rows[`${engine}: memory`] = {
      "200 MB, 1 instance: MiB": mebibytes(one.used),
      "4 instances: MiB": mebibytes(four.used),
      ratio: short(four.used / one.used),
      "each of 100 small models: MiB": short(many.added / SMALL_MODELS / 2 ** 20),
    };
  }
  for (const [name, { file, shape }] of Object.entries({ tiny, mlp })) {
    const programs = {};
    for (const engine of ["direct", ...ENGINES]) {
      programs[engine] = await startProgram("onnx-engine", { engine, files: [file], shape });
      await programs[engine].call("run", REQUESTS[name]);
    }
    const runs = Object.fromEntries(Object.keys(programs).map((engine) => [engine, []]));
    for (let pair = 0; pair < PAIRS; pair++) {
      for (const [engine, program] of Object.entries(programs)) {
        runs[engine].push(await program.call("run", REQUESTS[name]));
      }
    }
    for (const [engine, program] of Object.entries(programs)) {
      const added = runs[engine].map(({ p50 }, i) => ({ p50: p50 - runs.direct[i].p50 }));
      rows[`${engine}: ${name}, one at a time`] = {
        "p50 µs": short(medianOf(runs[engine], ({ p50 }) => p50)),
        "p50 over direct, µs": short(medianOf(added, ({ p50 }) => p50)),
        "p99 µs": short(medianOf(runs[engine], ({ p99 }) => p99)),
        "CPU µs": short(medianOf(runs[engine], ({ cpu }) => cpu)),
      };
      await program.stop();
    }
  }
  const { shape } = mlp;
  const request = binaryBody("mlp", [1, ...shape]);
  const servers = { naive: await startProgram("naive-server", { model: "mlp" }) };
  for (const engine of ENGINES) servers[engine] = await startProgram("onnx-server", { model: "mlp", engine });
  const p50Of = async (server) => {
    const url = await server.call("url");
    return 1000 * (await httpLoad({ ...request, url: `${url}${request.path}` }, 1, SECONDS)).p50Ms;
  };
  const p50s = Object.fromEntries(Object.keys(servers).map((name) => [name, []]));
  for (const server of Object.values(servers)) await p50Of(server);
  for (let pair = 0; pair < PAIRS; pair++) {
    for (const [name, server] of Object.entries(servers)) p50s[name].push(await p50Of(server));
  }
  for (const [name, server] of Object.entries(servers)) {
    const added = p50s[name].map((p50, i) => p50 - p50s.naive[i]);
    rows[`${name}: mlp over HTTP, one at a time`] = {
      "p50 µs": short(median(p50s[name])),
      "p50 over direct, µs": short(median(added)),
    };
    await server.stop();
  }
} finally {
  rmSync(folder, { recursive: true });
}

report("onnx-engines", {
  rows,
  document: "onnx-engines.md",
  note: "One thread for each session. `direct` calls `session.run` on the main thread; over HTTP, the naive server does so for each request. Memory is that of the process.",
});
