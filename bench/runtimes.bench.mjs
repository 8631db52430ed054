/*
 * What does a request cost by `fetchHandler` on each runtime, in its own server and in node:http? The programs are those of
 * examples/mount-fetch. CPU time is read from /proc, so this runs on Linux.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { RUNTIMES, runtimeArguments, runtimeBinary } from "../scripts/node-lines.mjs";
import { root } from "../scripts/run.mjs";
import { httpLoad, httpLoadTool } from "./support/load.mjs";
import { medianOf, PAIRS, SECONDS, short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

const CONNECTIONS = 16;

/** Clock ticks of a second in /proc. */
const TICKS = 100;

const cases = [
  { name: `Node ${process.versions.node}, \`node:http\``, runtime: "node", file: "node-http.js" },
  { name: `Bun ${RUNTIMES.bun}, \`Bun.serve\``, runtime: "bun", file: "bun.js" },
  { name: `Bun ${RUNTIMES.bun}, \`node:http\``, runtime: "bun", file: "node-http.js" },
  { name: `Deno ${RUNTIMES.deno}, \`Deno.serve\``, runtime: "deno", file: "deno.js" },
  { name: `Deno ${RUNTIMES.deno}, \`node:http\``, runtime: "deno", file: "node-http.js" },
];

const body = Buffer.from(
  JSON.stringify({
    inputs: [{ name: "x", datatype: "FP32", shape: [8], data: [1, 2, 3, 4, 5.5, 6, 7, 8] }],
  }),
);

async function start({ runtime, file }) {
  const [command, args] =
    runtime === "node" ? [process.execPath, []] : [runtimeBinary(runtime), runtimeArguments(runtime)];
  const child = spawn(command, [...args, join(root, "examples", "mount-fetch", "dist", file)], {
    env: { ...process.env, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(child.stdout.setEncoding("utf8"), "data");
  return { child, url: `http://127.0.0.1:${/:(\d+)\s*$/.exec(line)[1]}` };
}

/** Seconds of CPU that a process has used, with all its threads. */
function cpuSeconds({ pid }) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

const load = ({ url }, seconds) =>
  httpLoad(
    {
      url: `${url}/inference/v2/models/double/infer`,
      headers: { "content-type": "application/json" },
      body,
    },
    CONNECTIONS,
    seconds,
  );

const servers = [];
for (const one of cases) servers.push({ ...one, ...(await start(one)), runs: [] });
const seconds = Math.max(1, Math.round(SECONDS));
for (const server of servers) await load(server, 3 * seconds);
for (let i = 0; i < PAIRS; i++) {
  for (const server of servers) {
    const before = cpuSeconds(server.child);
    const { rate, p50Ms, p99Ms } = await load(server, seconds);
    const cpuMicros = ((cpuSeconds(server.child) - before) * 1e6) / (rate * seconds);
    server.runs.push({ rate, p50Ms, p99Ms, cpuMicros });
  }
}
const rows = {};
for (const { name, runs } of servers) {
  rows[name] = {
    "CPU µs": short(medianOf(runs, (run) => run.cpuMicros)),
    "a second": Math.round(medianOf(runs, (run) => run.rate)),
    "p50 ms": short(medianOf(runs, (run) => run.p50Ms)),
    "p99 ms": short(medianOf(runs, (run) => run.p99Ms)),
  };
}
for (const { child } of servers) {
  child.kill("SIGTERM");
  await once(child, "exit");
}

report("runtimes", {
  rows,
  note: `JSON of 8 numbers in each direction, ${CONNECTIONS} requests at a time. Load from ${httpLoadTool()}, on the same cores.`,
  document: "installing.md",
});
