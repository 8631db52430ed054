/*
 * The import rule. In each package, a folder may import only what stands above it in ORDER; files at the top that ORDER
 * does not name assemble the parts. Files do not import each other in a circle, types included. Packages import each
 * other through their public names only, and only as PACKAGES says.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { root as repository } from "./run.mjs";

/** What is checked: this repository, or the one at the path that is given. */
const root = process.argv[2] ?? repository;

/** Folders of each package, and files at its top that folders may import. */
const ORDER = {
  core: [
    "errors",
    "clock",
    "files",
    "tensor",
    "config",
    "observe",
    "request",
    "response",
    "shared-memory",
    "callable",
    "client",
    "request-memory",
    "batch",
    "cache",
    "instance",
    "scheduler",
    "model",
    "backends",
    "repository",
    "service",
    "frontend",
    "serve",
    "bind",
  ],
  http: [
    "limits.ts",
    "status-from-code.ts",
    "json",
    "exchange",
    "decode",
    "encode",
    "open-api",
    "routes",
    "v2",
    "node",
    "fastify",
    "web",
    "server",
    "client",
  ],
  grpc: ["status-from-code.ts", "proto", "transport", "decode", "encode", "handlers", "client"],
  cli: [
    "descriptor-fault.ts",
    "extensions.ts",
    "terminal.ts",
    "options",
    "check",
    "serve",
    "init",
    "commands",
  ],
};

/** What each package may import from outside. */
const PACKAGES = {
  core: [
    "@aws-sdk/client-s3",
    "@azure/storage-blob",
    "@google-cloud/storage",
    "@redis/client",
    "koffi",
    "lru-cache",
    "ndarray",
    "prom-client",
    "onnxruntime-node",
    "@tensorflow/tfjs",
  ],
  http: ["@tritonjs/core", "fastify", "ndarray"],
  grpc: ["@tritonjs/core", "@grpc/grpc-js", "protobufjs"],
  cli: ["@tritonjs/core", "@tritonjs/http", "@tritonjs/grpc", "commander"],
};

/** Core knows no socket. */
const NOT_IN_CORE = ["node:http", "node:http2", "node:https", "node:net", "node:tls", "node:dgram"];

/** Imports of types alone that are known to point back. Take out what is mended, add nothing. */
const KNOWN = new Set([
  "packages/core/src/config/sequence-batching.ts -> packages/core/src/config/model-config.ts",
  "packages/core/src/observe/latency/latency-metrics.ts -> packages/core/src/observe/statistics.ts",
  "packages/core/src/config/batch-tensors.ts -> packages/core/src/config/tensor-spec.ts",
  "packages/core/src/response/check-strictly.ts -> packages/core/src/response/check-outputs.ts",
  "packages/core/src/instance/worker/open-worker.ts -> packages/core/src/instance/worker/worker-program.ts",
  "packages/core/src/instance/worker/opened-worker.ts -> packages/core/src/instance/worker/worker-program.ts",
  "packages/core/src/request/request-observers.ts -> packages/core/src/request/inference-request.ts",
  "packages/core/src/instance/instance-group-listener.ts -> packages/core/src/instance/instance-group.ts",
  "packages/core/src/scheduler/dynamic-batch/batcher-share.ts -> packages/core/src/scheduler/dynamic-batch/dynamic-batch-scheduler.ts",
  "packages/core/src/scheduler/ensemble/step-sequence.ts -> packages/core/src/scheduler/ensemble/ensemble-tensor.ts",
  "packages/core/src/scheduler/sequence-batch/sequence.ts -> packages/core/src/scheduler/sequence-batch/slot.ts",
  "packages/core/src/shared-memory/request-regions.ts -> packages/core/src/shared-memory/shared-memory.ts",
  "packages/cli/src/commands/config-command.ts -> packages/cli/src/commands/command-line.ts",
  "packages/cli/src/commands/init-command.ts -> packages/cli/src/commands/command-line.ts",
  "packages/cli/src/commands/types-command.ts -> packages/cli/src/commands/command-line.ts",
  "packages/http/src/decode/decompress.ts -> packages/http/src/routes/route.ts",
]);

const faults = [];

function* sources(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (/\.(ts|mjs|js)$/.test(entry.name)) yield path;
  }
}

function importsOf(path) {
  const text = readFileSync(path, "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
  const found = text.matchAll(
    /(?:^|\n)\s*(?:import|export)\s(?:[\w\s{},*$]*\sfrom\s*)?["']([^"']+)["']|\bimport\s*\(\s*["']([^"']+)["']/g,
  );
  return [...found].map((match) => match[1] ?? match[2]);
}

/** A path as it stands in a message. */
const shown = (path) => relative(root, path).split(sep).join("/");

const isKnown = (path, imported) => KNOWN.has(`${shown(path)} -> ${shown(imported)}`);

/** The file that a relative import names: TypeScript imports `x.ts` as `x.js`. */
function fileOf(path, specifier) {
  const target = join(dirname(path), specifier);
  return target.endsWith(".js") && !existsSync(target) ? target.replace(/\.js$/, ".ts") : target;
}

function checkOrder(path, specifier, name, source) {
  const order = ORDER[name];
  if (isKnown(path, fileOf(path, specifier))) return;
  const [from] = relative(source, path).split(sep);
  const [to] = relative(source, fileOf(path, specifier)).split(sep);
  if (!order.includes(from) || from === to) return;
  if (!order.includes(to)) {
    faults.push(`${shown(path)}: a folder may not import ${specifier} from the top`);
  } else if (order.indexOf(to) > order.indexOf(from)) {
    faults.push(
      `${shown(path)}: ${titleOf(from)} may not import ${titleOf(to)}, which stands below it (${specifier})`,
    );
  }
}

const titleOf = (entry) => (entry.endsWith(".ts") ? entry : `${entry}/`);

function checkImport(path, specifier, name, source) {
  if (specifier.startsWith(".")) {
    if (relative(source, join(dirname(path), specifier)).startsWith("..")) {
      faults.push(`${shown(path)}: ${specifier} leaves the package`);
    } else checkOrder(path, specifier, name, source);
  } else if (specifier.startsWith("#")) {
    // A name that the package gives to a part of itself.
  } else if (specifier.startsWith("node:")) {
    if (name === "core" && NOT_IN_CORE.includes(specifier)) {
      faults.push(`${shown(path)}: core knows no socket, but imports ${specifier}`);
    }
  } else if (
    !PACKAGES[name].some((allowed) => specifier === allowed || specifier.startsWith(`${allowed}/`))
  ) {
    faults.push(`${shown(path)}: packages/${name} may not import ${specifier}`);
  }
}

/** Reports each import that leads back to a file from which its own file was reached: one for each circle. */
function checkCircles(graph) {
  const done = new Set();
  const way = [];
  const visit = (file) => {
    const start = way.indexOf(file);
    if (start >= 0) {
      const circle = [...way.slice(start), file].map(shown);
      faults.push(`files import each other in a circle: ${circle.join(" -> ")}`);
      return;
    }
    if (done.has(file)) return;
    way.push(file);
    for (const imported of graph.get(file) ?? []) {
      if (!isKnown(file, imported)) visit(imported);
    }
    way.pop();
    done.add(file);
  };
  for (const file of graph.keys()) visit(file);
}

for (const name of Object.keys(PACKAGES)) {
  const source = join(root, "packages", name, "src");
  for (const entry of readdirSync(source, { withFileTypes: true })) {
    if (entry.isDirectory() && !ORDER[name].includes(entry.name)) {
      faults.push(`packages/${name}/src/${entry.name} has no place in the import order`);
    }
  }
  const graph = new Map();
  for (const path of sources(source)) {
    const specifiers = importsOf(path);
    for (const specifier of specifiers) checkImport(path, specifier, name, source);
    const own = specifiers.filter((specifier) => specifier.startsWith("."));
    graph.set(
      path,
      own.map((specifier) => fileOf(path, specifier)),
    );
  }
  checkCircles(graph);
}

for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exit(1);
console.log("imports point one way");
