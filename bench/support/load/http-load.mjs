import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startProgram } from "../program.mjs";
import { isInstalled, outputOf } from "./tools.mjs";

/*
 * Sends requests of one kind to an HTTP server from another process, `connections` at a time for `seconds`. Uses `wrk`
 * if it is installed, else a client of our own over bare sockets.
 */

/** Name of the tool that sends the requests. */
export const httpLoadTool = () => (isInstalled("wrk") ? "wrk" : "bench/programs/http-client.mjs");

/**
 * @param request `{ url, headers, body }`
 * @returns answers a second, and the median and the 99th percentile of the latency in milliseconds
 */
export async function httpLoad(request, connections, seconds) {
  const load = isInstalled("wrk") ? withWrk : withOwnClient;
  const result = await load(request, connections, seconds);
  // A busy machine may not answer any of many large requests in that time.
  if (result.rate === 0 && seconds < 30) return httpLoad(request, connections, 2 * seconds);
  if (result.errors > 0 || !(result.rate > 0)) throw new Error(`the load failed: ${JSON.stringify(result)}`);
  return result;
}

async function withWrk({ url, headers, body }, connections, seconds) {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-bench-"));
  try {
    const [script, file] = [join(folder, "request.lua"), join(folder, "body")];
    writeFileSync(file, body);
    const lines = Object.entries(headers).map(([name, value]) => `wrk.headers["${name}"] = "${value}"`);
    writeFileSync(script, [...lines, ...luaLines(file)].join("\n"));
    const duration = `${Math.max(1, Math.round(seconds))}s`;
    const output = await outputOf("wrk", [
      ...["-t", "1", "-c", String(connections), "-d", duration],
      ...["--timeout", "30s", "-s", script, url],
    ]);
    return JSON.parse(output.slice(output.indexOf("{")));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const luaLines = (file) => [
  'wrk.method = "POST"',
  `wrk.body = io.open("${file}", "rb"):read("*a")`,
  "done = function(summary, latency)",
  "  local e = summary.errors",
  `  io.write(string.format('{"rate":%f,"p50Ms":%f,"p99Ms":%f,"errors":%d}', summary.requests / summary.duration * 1e6,`,
  "    latency:percentile(50) / 1000, latency:percentile(99) / 1000, e.connect + e.read + e.write + e.status + e.timeout))",
  "end",
];

async function withOwnClient({ url, headers, body }, connections, seconds) {
  const client = await startProgram("http-client", {});
  try {
    const text = Buffer.from(body).toString("base64");
    return await client.call("run", { url, headers, body: text, connections, seconds });
  } finally {
    await client.stop();
  }
}
