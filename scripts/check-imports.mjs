/*
 * The import rule. In each package, a folder may import only folders that come before it in ORDER. Files at the top
 * that ORDER does not name assemble the parts. Files must not import each other in a cycle, type imports included.
 * Packages import each other only through their public names, and only as PACKAGES permits. No library names an
 * extension, and core has at most CORE_LINES lines.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { root as repository } from "./run.mjs";

/** Root of the checked repository: this one, or the path in the first argument. */
const root = process.argv[2] ?? repository;

/** Folders of each package in their order, and the top-level files that folders may import. */
const ORDER = {
  protocol: ["closest-name.ts", "half-floats.ts", "data-types.ts", "grpc"],
  core: [
    "optional-packages.ts",
    "version.ts",
    "system",
    "tensor-rows.ts",
    "request-info.ts",
    "config",
    "observe",
    "request",
    "shared-memory",
    "callback",
    "batch",
    "cache",
    "instance",
    "worker",
    "scheduler",
    "model",
    "extension",
    "backends",
    "frontend",
    "in-process",
    "bind",
    "web",
    "triton",
  ],
  server: ["access", "shared-memory", "service", "frontend", "frontend-threads"],
  scheduling: [],
  testing: [],
  repository: ["config", "repository-options.ts", "backends", "directories", "loading"],
  operations: ["opentelemetry", "redis", "capture", "on-demand", "time-travel", "rollout"],
  perf: [
    "command",
    "data",
    "target",
    "load",
    "measure",
    "simulate",
    "report",
    "perf",
    "trace",
    "analyze",
    "optimize",
  ],
  "onnxruntime-wasm": [],
  backends: [
    "protobuf-schema.ts",
    "onnx-telemetry.ts",
    "description",
    "web-worker",
    "gpu",
    "trees",
    "media",
    "remote",
    "tensorflow",
    "python",
    "webgpu",
    "onnx-graph",
    "onnxruntime",
    "optimize",
    "classes",
  ],
  http: ["limits.ts", "json", "exchange", "infer", "routes", "server", "cloud", "dashboard"],
  grpc: ["status-from-code.ts", "shutdown.ts", "transport", "infer", "methods"],
  client: [
    "options.ts",
    "infer-request.ts",
    "deadline.ts",
    "caller.ts",
    "server-addresses.ts",
    "several-servers.ts",
    "infer-result.ts",
    "served-models.ts",
    "known-model.ts",
    "models-client.ts",
    "index.ts",
    "recording",
    "http",
    "grpc",
  ],
  llm: [
    "turns.ts",
    "token-spelling.ts",
    "linear-pattern.ts",
    "tokenizer-limits.ts",
    "token-models.ts",
    "sentencepiece-normalizer.ts",
    "sentencepiece-model.ts",
    "text-tokenizer.ts",
    "tokenizer",
    "sampling",
    "structured",
    "chat",
    "text-request.ts",
    "text-callback.ts",
    "text-answer.ts",
    "text-generator.ts",
    "text-embedder.ts",
    "prefix-directory.ts",
    "decoder",
    "llamacpp",
    "openai",
    "ai-sdk",
    "langchain",
    "mcp",
  ],
  cli: ["descriptor-fault.ts", "command-context.ts", "options", "serve", "repo-add", "types", "commands"],
};

/** Imports from outside that each package may have. */
const PACKAGES = {
  protocol: ["ndarray", "protobufjs"],
  core: ["@tritonjs/protocol", "koffi", "lru-cache", "ndarray", "prom-client"],
  server: ["@tritonjs/core", "@tritonjs/protocol", "lru-cache", "re2js"],
  scheduling: ["@tritonjs/core", "@tritonjs/protocol"],
  testing: ["@tritonjs/core", "@tritonjs/protocol"],
  repository: [
    "@tritonjs/core",
    "@tritonjs/protocol",
    "@aws-sdk/client-s3",
    "@azure/storage-blob",
    "@google-cloud/storage",
  ],
  operations: ["@tritonjs/core", "@tritonjs/protocol"],
  perf: [
    "@tritonjs/backends",
    "@tritonjs/client",
    "@tritonjs/core",
    "@tritonjs/operations",
    "@tritonjs/protocol",
    "@tritonjs/repository",
    "@tritonjs/scheduling",
    "@tritonjs/server",
    "commander",
    "hdr-histogram-js",
    "hyparquet",
  ],
  backends: ["@tritonjs/core", "@tritonjs/protocol", "@tritonjs/repository", "prom-client"],
  http: ["@tritonjs/core", "@tritonjs/protocol", "@tritonjs/server", "fastify", "ndarray"],
  grpc: ["@tritonjs/core", "@tritonjs/protocol", "@tritonjs/server", "@grpc/grpc-js"],
  client: ["@tritonjs/protocol", "@grpc/grpc-js", "ndarray"],
  "onnxruntime-wasm": [],
  llm: [
    "@eslint-community/regexpp",
    "@huggingface/tokenizers",
    "@tritonjs/core",
    "@tritonjs/protocol",
    "@tritonjs/server",
  ],
  cli: [
    "@tritonjs/backends",
    "@tritonjs/client",
    "@tritonjs/core",
    "@tritonjs/grpc",
    "@tritonjs/http",
    "@tritonjs/llm",
    "@tritonjs/operations",
    "@tritonjs/perf",
    "@tritonjs/protocol",
    "@tritonjs/repository",
    "@tritonjs/scheduling",
    "@tritonjs/server",
    "@tritonjs/testing",
    "commander",
    "koffi",
  ],
};

/** Imports that only one folder of a package may have, so that the other folders work without them. */
const ONLY_IN = {
  backends: {
    media: ["sharp"],
    "onnx-graph": ["protobufjs"],
    onnxruntime: ["onnxruntime-node"],
    remote: ["@tritonjs/client"],
    tensorflow: ["@tensorflow/tfjs"],
    "protobuf-schema.ts": ["protobufjs"],
    webgpu: ["webgpu"],
  },
  cli: {
    serve: ["@opentelemetry"],
  },
  operations: {
    capture: ["hyparquet-writer"],
    opentelemetry: ["@opentelemetry/api"],
    redis: ["@redis/client"],
  },
  llm: {
    openai: ["@fastify/busboy", "@streamparser/json", "@tritonjs/http"],
    "ai-sdk": ["@ai-sdk/openai-compatible", "@ai-sdk/provider"],
    langchain: ["@langchain/core"],
    mcp: ["@modelcontextprotocol/sdk"],
    decoder: ["@tritonjs/backends/onnxruntime", "@tritonjs/backends/media", "onnxruntime-node"],
    chat: ["@huggingface/jinja"],
  },
};

/** Core opens no sockets. */
const NOT_IN_CORE = ["node:http", "node:http2", "node:https", "node:net", "node:tls", "node:dgram"];

/**
 * Files of each package that run where there is only the web platform, with all that they import. They import nothing of
 * Node but `#host`, which has another form there.
 */
const ON_THE_WEB = {
  core: ["web.ts", "system/host-web.ts"],
  backends: ["onnxruntime/web.ts", "web-worker/index.ts"],
};

/** The command's table of extensions, which names all that it knows. */
const TABLE = "packages/cli/src/serve/extensions.ts";

/**
 * Extensions: where each lives, the words by which another file would name it, and the programs (parts of the command, of
 * its tools and of the dashboard) whose subject it is. Besides these, only the command's table may name it. So a library
 * names none. Comments do not count.
 */
const EXTENSIONS = {
  rollouts: {
    home: "packages/operations/src/rollout",
    names: /rollout/i,
    // Its command and options; the tool that compares answers as rollouts do.
    programs: [
      "packages/cli/src/commands/rollout-command.ts",
      "packages/cli/src/run.ts",
      "packages/cli/src/options/server-options.ts",
      "packages/perf/src/trace/replay-answers.ts",
    ],
  },
  captures: {
    home: "packages/operations/src/capture",
    names: /operations\/capture|\bcapture\(/,
    programs: [],
  },
  "models on demand": {
    home: "packages/operations/src/on-demand",
    names: /onDemand|on-demand|modelTtl|modelMemoryBudget/,
    programs: ["packages/cli/src/options/server-options.ts"],
  },
  recordings: {
    home: "packages/operations/src/time-travel",
    names: /time-travel|recordScheduling|\btaped?\b/i,
    // Its options; the tool that replays recordings; the page that shows one.
    programs: [
      "packages/cli/src/options/server-options.ts",
      "packages/perf/src/trace/replay.ts",
      "packages/http/src/dashboard/index.ts",
    ],
  },
  OpenTelemetry: {
    home: "packages/operations/src/opentelemetry",
    names: /operations\/opentelemetry|@opentelemetry/,
    // Spans of the command go by the SDK, which a program brings itself.
    programs: ["packages/cli/src/serve/span-tracer.ts"],
  },
  repositories: {
    home: "packages/repository/src",
    names: /@tritonjs\/repository/,
    // Commands and tools that read and write directories of models; the layouts of other servers.
    programs: [
      "packages/cli/src/",
      "packages/perf/src/",
      "packages/backends/src/classes/model-settings.ts",
      "packages/backends/src/python/index.ts",
    ],
  },
  deadlines: {
    home: "packages/scheduling/src",
    names: /@tritonjs\/scheduling|targetLatency|fairShares|shares_by/,
    // Tools that search for settings of batchers, or play loads with them.
    programs: [
      "packages/perf/src/analyze/",
      "packages/perf/src/command/repository-server.ts",
      "packages/perf/src/simulate/",
      "packages/perf/src/trace/",
    ],
  },
  GPUs: {
    home: "packages/backends/src",
    names: /backends\/gpu|CudaPools|nvml/i,
    programs: ["packages/cli/src/commands/", "packages/perf/src/command/repository-server.ts"],
  },
};

/**
 * Lines of core, with its comments. A feature that does not fit becomes an extension on a seam of core, as a program
 * would write it. So the core stays small enough to be understood whole.
 */
const CORE_LINES = 30_000;

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

/** Path as shown in messages. */
const shown = (path) => relative(root, path).split(sep).join("/");

/** Resolves a relative import to a file: TypeScript imports `x.ts` as `x.js`. */
function fileOf(path, specifier) {
  const target = join(dirname(path), specifier);
  return target.endsWith(".js") && !existsSync(target) ? target.replace(/\.js$/, ".ts") : target;
}

function checkOrder(path, specifier, name, source) {
  const order = ORDER[name];
  const [from] = relative(source, path).split(sep);
  const [to] = relative(source, fileOf(path, specifier)).split(sep);
  if (!order.includes(from) || from === to) return;
  if (!order.includes(to)) {
    faults.push(`${shown(path)}: a folder may not import ${specifier} from the top`);
  } else if (order.indexOf(to) > order.indexOf(from)) {
    faults.push(
      `${shown(path)}: ${titleOf(from)} may not import ${titleOf(to)}, which is below it (${specifier})`,
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
    // A name by which the package imports a part of itself.
  } else if (specifier.startsWith("node:")) {
    if (name === "core" && NOT_IN_CORE.includes(specifier)) {
      faults.push(`${shown(path)}: core opens no sockets, but imports ${specifier}`);
    }
  } else if (!mayImport(specifier, name, relative(source, path).split(sep)[0])) {
    faults.push(`${shown(path)}: packages/${name} may not import ${specifier}`);
  }
}

function mayImport(specifier, name, folder) {
  return [...PACKAGES[name], ...(ONLY_IN[name]?.[folder] ?? [])].some(
    (allowed) => specifier === allowed || specifier.startsWith(`${allowed}/`),
  );
}

/** Reports one import for each cycle: the import that leads back to a file from which its own file was reached. */
function checkCycles(graph) {
  const done = new Set();
  const way = [];
  const visit = (file) => {
    const start = way.indexOf(file);
    if (start >= 0) {
      const cycle = [...way.slice(start), file].map(shown);
      faults.push(`files import each other in a cycle: ${cycle.join(" -> ")}`);
      return;
    }
    if (done.has(file)) return;
    way.push(file);
    for (const imported of graph.get(file) ?? []) {
      visit(imported);
    }
    way.pop();
    done.add(file);
  };
  for (const file of graph.keys()) visit(file);
}

/** Reports imports of Node on the way from the files that run on the web. Types do not count. */
function checkWeb(name, source) {
  const seen = new Set();
  const visit = (path, way) => {
    if (seen.has(path)) return;
    seen.add(path);
    for (const specifier of valueImportsOf(path)) {
      if (specifier.startsWith(".")) visit(fileOf(path, specifier), [...way, shown(path)]);
      else if (specifier.startsWith("node:")) {
        faults.push(`${[...way, shown(path)].join(" -> ")}: runs on the web, but imports ${specifier}`);
      }
    }
  };
  for (const entry of ON_THE_WEB[name] ?? []) {
    const path = join(source, entry);
    if (existsSync(path)) visit(path, []);
  }
}

/** Imports that are left when types are removed. */
function valueImportsOf(path) {
  const text = readFileSync(path, "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
  const found = text.matchAll(
    /(?:^|\n)\s*(?:import|export)\s(?!type\s)([\w\s{},*$]*\sfrom\s*)?["']([^"']+)["']/g,
  );
  return [...found]
    .filter(([, names = ""]) => {
      const list = /^\s*\{([^}]*)\}/
        .exec(names)?.[1]
        .split(",")
        .filter((one) => one.trim() !== "");
      return list === undefined || list.some((one) => !/^\s*type\s/.test(one));
    })
    .map(([, , specifier]) => specifier);
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
  checkCycles(graph);
  checkWeb(name, source);
}

/** Reports files that name an extension in which they are not. */
function checkExtensions() {
  const files = Object.keys(PACKAGES).flatMap((name) => [...sources(join(root, "packages", name, "src"))]);
  const texts = new Map(files.map((path) => [shown(path), codeOf(readFileSync(path, "utf8"))]));
  for (const [extension, { home, names, programs }] of Object.entries(EXTENSIONS)) {
    for (const [path, code] of texts) {
      if ([TABLE, home, ...programs].some((place) => path.startsWith(place))) continue;
      const named = names.exec(code);
      if (named !== null) faults.push(`${path} names the extension '${extension}': ${named[0]}`);
    }
  }
}

/** A module without its comments. */
function codeOf(text) {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
}

function checkSize() {
  const lines = [...sources(join(root, "packages", "core", "src"))]
    .map((path) => readFileSync(path, "utf8").split("\n").length - 1)
    .reduce((sum, count) => sum + count, 0);
  if (lines > CORE_LINES) {
    faults.push(
      `packages/core/src: expected at most ${CORE_LINES} lines, got ${lines}: make a feature an extension`,
    );
  }
}

checkExtensions();
checkSize();
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exit(1);
console.log("imports point one way");
