/*
 * How fast does the load generator of @tritonjs/perf send, compared with wrk over HTTP and h2load over gRPC? All load
 * the same server, in turns, with tensors of 64 B. The CPU time of a request in the generator's thread tells more on a
 * busy machine.
 *
 * Exit code 1 if the generator reaches less than 0.6 of a tool's rate.
 */

import { loadDataSet, readModel, startLoadGenerator } from "@tritonjs/perf";
import { binaryBody, grpcLoad, grpcLoadTool, httpLoad, httpLoadTool, inferMessage } from "./support/load.mjs";
import { medianOf, ratioOf, runPairs, SECONDS } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const STREAMS = 8;
/** Least share of a tool's rate. */
const LEAST_RATIO = 0.6;

const server = await startProgram("identity-server");
const urls = await server.call("urls");
const seconds = Math.max(1, Math.round(SECONDS));
const message = await inferMessage("small", 64, true);
const { path, headers, body } = binaryBody("small", [1, 16]);

const tools = {
  http: (concurrency) => httpLoad({ url: `${urls.http}${path}`, headers, body }, concurrency, seconds),
  grpc: (concurrency) =>
    grpcLoad(
      { url: urls.grpc, method: "ModelInfer", messages: [message] },
      { connections: Math.ceil(concurrency / STREAMS), streams: Math.min(concurrency, STREAMS) },
      seconds,
    ),
};

const rows = {};
for (const [kind, tool] of [
  ["http", httpLoadTool()],
  ["grpc", grpcLoadTool()],
]) {
  const target = { kind, url: urls[kind], modelName: "small" };
  const data = await loadDataSet(await readModel(target));
  const generator = await startLoadGenerator(target, data, { threads: 1 });
  // Until the hot code is compiled.
  await generator.begin({ mode: "concurrency", value: 16 });
  await new Promise((resolve) => setTimeout(resolve, 3000));
  await generator.pause();
  for (const concurrency of [16, 64]) {
    const ours = async () => {
      await generator.begin({ mode: "concurrency", value: concurrency });
      await generator.take();
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      const { records, usage, start, end } = await generator.take();
      await generator.pause();
      if (records.errors.length > 0) throw new Error(records.errors[0]);
      return {
        rate: (records.count * 1000) / (end - start),
        cpuMicros: (usage.cpuMs * 1000) / records.count,
      };
    };
    const runs = await runPairs(ours, () => tools[kind](concurrency));
    const label = `${kind === "http" ? "HTTP" : "gRPC"}, ${concurrency} at a time`;
    const { ratios: _, ...ratio } = ratioOf(runs);
    rows[label] = {
      "a second": medianOf(runs.ours, ({ rate }) => rate),
      tool,
      "a second, tool": medianOf(runs.reference, ({ rate }) => rate),
      ...ratio,
      "CPU µs": medianOf(runs.ours, ({ cpuMicros }) => cpuMicros),
    };
  }
  await generator.close();
}
await server.stop();

report("load-generator", {
  rows,
  document: "performance-tools.md",
  note: "One thread of the generator. The ratio is that of the rates, ours divided by the tool's.",
});
const missed = Object.keys(rows).filter((label) => !(rows[label].ratio >= LEAST_RATIO));
if (missed.length > 0) {
  console.error(`missed the goal of ${LEAST_RATIO}: ${missed.join("; ")}`);
  process.exitCode = 1;
}
