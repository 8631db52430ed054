import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../scripts/run.mjs";
import { medianOf, ratioOf, runPairs, SECONDS, short } from "./pairs.mjs";
import { startProgram } from "./program.mjs";
import { codecOf } from "./tree.mjs";

/* Loads of one kind on a server, sent from other processes. */

const known = new Map();

/** Whether a program is installed. */
export function isInstalled(command) {
  if (!known.has(command)) {
    const finder = process.platform === "win32" ? "where" : "which";
    known.set(command, spawnSync(finder, [command]).status === 0);
  }
  return known.get(command);
}

/** Runs a program and returns what it printed. */
export async function outputOf(command, args) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  const code = await new Promise((resolve) => child.once("close", resolve));
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${output.slice(-500)}`);
  return output;
}

/** An HTTP request to a model of bench/programs/identity-server.mjs: an FP32 tensor, binary in both directions. */
export function binaryBody(model, shape) {
  const elements = shape.reduce((product, dim) => product * dim, 1);
  const tensor = Buffer.from(new Float32Array(elements).fill(0.5).buffer);
  const byteSize = tensor.length;
  const header = Buffer.from(
    JSON.stringify({
      inputs: [{ name: "x", datatype: "FP32", shape, parameters: { binary_data_size: byteSize } }],
      parameters: { binary_data_output: true },
    }),
  );
  return {
    path: `/v2/models/${model}/infer`,
    headers: {
      "content-type": "application/octet-stream",
      "inference-header-content-length": String(header.length),
    },
    body: Buffer.concat([header, tensor]),
  };
}

/** An HTTP request to such a model: an FP32 tensor with four decimals, in about the given number of bytes of JSON. */
export function jsonBody(model, byteSize) {
  const data = [];
  for (let length = 0; length < byteSize; ) {
    const number = ((data.length * 7919) % 20_000) / 10_000 - 1;
    data.push(Number(number.toFixed(4)));
    length += String(data.at(-1)).length + 1;
  }
  const inputs = [{ name: "x", datatype: "FP32", shape: [data.length], data }];
  return {
    path: `/v2/models/${model}/infer`,
    headers: { "content-type": "application/json" },
    body: Buffer.from(JSON.stringify({ inputs })),
  };
}

/** Name of the tool that sends the requests. */
export const httpLoadTool = () => (isInstalled("wrk") ? "wrk" : "bench/programs/http-client.mjs");

/**
 * Sends HTTP requests, `connections` at a time for `seconds`: with `wrk` if it is installed, else with a client of our
 * own over bare sockets.
 *
 * @param request `{ url, headers, body }`
 * @returns answers a second, and the median and the 99th percentile of the latency in milliseconds
 */
export async function httpLoad(request, connections, seconds) {
  const { url, headers, body } = request;
  const result = isInstalled("wrk")
    ? await withWrk(request, connections, seconds)
    : await withOwnClient("http-client", { url, headers, body, connections, seconds });
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

/** Sends with a client of our own. */
async function withOwnClient(name, call) {
  const client = await startProgram(name);
  try {
    return await client.call("run", { ...call, body: Buffer.from(call.body).toString("base64") });
  } finally {
    await client.stop();
  }
}

/**
 * An encoded ModelInferRequest with an FP32 tensor of the given number of bytes, for
 * bench/programs/identity-server.mjs.
 */
export async function inferMessage(modelName, byteSize, batched) {
  const { encodeMessage, inference } = await codecOf();
  const elements = byteSize / 4;
  return encodeMessage(inference.ModelInferRequest, {
    modelName,
    inputs: [{ name: "x", datatype: "FP32", shape: batched ? [1, elements] : [elements] }],
    rawInputContents: [Buffer.from(new Float32Array(elements).fill(0.5).buffer)],
  });
}

/** Name of the tool that makes the calls. */
export const grpcLoadTool = () => (isInstalled("h2load") ? "h2load" : "bench/programs/grpc-client.mjs");

/**
 * Calls one gRPC method: with `h2load` if it is installed, else with a client of our own over node:http2.
 *
 * @param call `{ url, method, messages }`: each call sends these messages and gets an answer to each
 * @returns calls a second
 */
export async function grpcLoad(call, { connections, streams }, seconds) {
  const { url, method, messages } = call;
  const body = Buffer.concat(messages.map(framed));
  const result = isInstalled("h2load")
    ? await withH2load({ url, method, body }, { connections, streams }, seconds)
    : await withOwnClient("grpc-client", { url, method, body, connections, streams, seconds });
  if (result.errors > 0 || !(result.rate > 0)) throw new Error(`the load failed: ${JSON.stringify(result)}`);
  return result;
}

/** A message in gRPC's framing: a byte for "not compressed", its length, and the message. */
export function framed(message) {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

async function withH2load({ url, method, body }, { connections, streams }, seconds) {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-bench-"));
  try {
    const file = join(folder, "body");
    writeFileSync(file, body);
    const output = await outputOf("h2load", [
      ...["-c", String(connections), "-m", String(streams), "-D", String(Math.max(1, Math.round(seconds)))],
      ...["-d", file, "-H", "content-type: application/grpc", "-H", "te: trailers"],
      `http://${url}/inference.GRPCInferenceService/${method}`,
    ]);
    const number = (pattern) => Number(pattern.exec(output)?.[1] ?? Number.NaN);
    return {
      rate: number(/finished in .*?, ([\d.]+) req\/s/),
      errors:
        number(/(\d+) errored/) + number(/(\d+) timeout/) + number(/, (\d+) 4xx/) + number(/, (\d+) 5xx/),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const grpcCoreSource = join(root, "bench", "programs", "grpc-core-client.cc");
const grpcCoreFolder = join(root, "node_modules", ".cache", "bench");
const grpcCoreProgram = join(grpcCoreFolder, "grpc-core-client");

/** Whether the C++ client can be built here (Debian: `g++`, `pkg-config`, `libgrpc++-dev`). */
export const hasGrpcCore = () =>
  isInstalled("g++") &&
  isInstalled("pkg-config") &&
  spawnSync("pkg-config", ["--exists", "grpc++", "protobuf"]).status === 0;

/** Calls `ModelInfer` with the C++ client of gRPC, `streams` at a time on each connection. */
export async function grpcCoreLoad({ url, message }, { connections, streams }, seconds) {
  await buildGrpcCore();
  const files = mkdtempSync(join(tmpdir(), "tritonjs-bench-"));
  try {
    const file = join(files, "message");
    writeFileSync(file, message);
    const method = "/inference.GRPCInferenceService/ModelInfer";
    const numbers = [connections, streams, seconds].map(String);
    const result = JSON.parse(await outputOf(grpcCoreProgram, [url, method, file, ...numbers]));
    if (result.errors > 0) throw new Error(`the load failed: ${JSON.stringify(result)}`);
    return result;
  } finally {
    rmSync(files, { recursive: true });
  }
}

async function buildGrpcCore() {
  if (existsSync(grpcCoreProgram) && statSync(grpcCoreProgram).mtimeMs > statSync(grpcCoreSource).mtimeMs)
    return;
  mkdirSync(grpcCoreFolder, { recursive: true });
  const flags = (await outputOf("pkg-config", ["--cflags", "--libs", "grpc++", "protobuf"]))
    .trim()
    .split(/\s+/);
  await outputOf("g++", ["-O2", "-std=c++17", grpcCoreSource, "-o", grpcCoreProgram, ...flags]);
}

/** Warm-up time, until the hot code is compiled. */
const WARM_UP_SECONDS = 3 * SECONDS;

/**
 * Loads two servers in turns. Measures answers a second, and the CPU time of an answer in the server, which other work
 * on the machine affects less. Also measures how busy the event loop was: near 100% the load was sufficient.
 *
 * @param ours the program and the function that loads it: `[program, async (seconds) => ({ rate, p50Ms, p99Ms })]`, the
 * latencies if it knows them
 */
export async function compareServers(ours, reference, { seconds = SECONDS, scale = 1 } = {}) {
  for (const [, load] of [ours, reference]) await load(Math.max(WARM_UP_SECONDS, seconds));
  const runs = await runPairs(measured(ours, seconds, scale), measured(reference, seconds, scale), {
    warmUp: false,
  });
  const { ratios, ...ratio } = ratioOf(runs);
  const cpu = ratioOf({ ours: runs.reference, reference: runs.ours }, ({ cpuMicros }) => cpuMicros);
  const row = {
    "a second here": medianOf(runs.ours, ({ rate }) => rate),
    "a second there": medianOf(runs.reference, ({ rate }) => rate),
    ...ratio,
    "CPU µs here": medianOf(runs.ours, ({ cpuMicros }) => cpuMicros),
    "CPU µs there": medianOf(runs.reference, ({ cpuMicros }) => cpuMicros),
    "ratio by CPU": cpu.ratio,
    ...latencies(runs),
    "busy here": percent(medianOf(runs.ours, ({ busy }) => busy)),
    "busy there": percent(medianOf(runs.reference, ({ busy }) => busy)),
  };
  return { row, ratio, ratios, cpu };
}

/** Median and 99th percentile of the latency, from loads that report them. */
function latencies({ ours, reference }) {
  if (ours[0].p50Ms === undefined) return {};
  return {
    "p50 ms here": medianOf(ours, ({ p50Ms }) => p50Ms),
    "p99 ms here": medianOf(ours, ({ p99Ms }) => p99Ms),
    "p50 ms there": medianOf(reference, ({ p50Ms }) => p50Ms),
    "p99 ms there": medianOf(reference, ({ p99Ms }) => p99Ms),
  };
}

const percent = (share) => `${Math.round(short(share) * 100)}%`;

function measured([program, load], seconds, scale) {
  return async () => {
    await program.call("use");
    const start = performance.now();
    const { rate, p50Ms, p99Ms } = await load(seconds);
    const elapsed = (performance.now() - start) / 1000;
    const { cpuMs, utilization } = await program.call("use");
    const answers = rate * scale * seconds;
    return {
      rate: rate * scale,
      p50Ms,
      p99Ms,
      cpuMicros: (cpuMs * 1000) / answers,
      busy: Math.min(1, (utilization * elapsed) / seconds),
    };
  };
}
