/*
 * The import rule. In core, a folder may import only folders that stand above it here; the files at the top
 * assemble the parts. Packages import each other through their public names only, and only as PACKAGES says.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { root as repository } from "./run.mjs";

/** What is checked: this repository, or the one at the path that is given. */
const root = process.argv[2] ?? repository;

const CORE_ORDER = [
  "errors",
  "async",
  "clock",
  "files",
  "tensor",
  "config",
  "observe",
  "request",
  "response",
  "shared-memory",
  "callable",
  "request-memory",
  "batch",
  "cache",
  "instance",
  "scheduler",
  "model",
  "backends",
  "repository",
  "service",
  "serve",
  "bind",
];

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
  "grpc-messages": ["protobufjs"],
  grpc: ["@tritonjs/core", "@tritonjs/grpc-messages", "@grpc/grpc-js"],
  client: ["@tritonjs/core", "@tritonjs/grpc-messages", "@grpc/grpc-js", "ndarray"],
  cli: ["@tritonjs/core", "@tritonjs/http", "@tritonjs/grpc", "commander"],
};

/** Core knows no socket. */
const NOT_IN_CORE = ["node:http", "node:http2", "node:https", "node:net", "node:tls", "node:dgram"];

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

function checkCore(path, specifier, source) {
  const [from] = relative(source, path).split(sep);
  const [to] = relative(source, join(dirname(path), specifier)).split(sep);
  if (!CORE_ORDER.includes(from)) return;
  if (!CORE_ORDER.includes(to))
    faults.push(`${relative(root, path)}: a folder may not import ${specifier} from the top`);
  else if (CORE_ORDER.indexOf(to) > CORE_ORDER.indexOf(from)) {
    faults.push(
      `${relative(root, path)}: ${from}/ may not import ${to}/, which stands below it (${specifier})`,
    );
  }
}

function checkPackage(path, specifier, name, source) {
  if (specifier.startsWith(".")) {
    if (relative(source, join(dirname(path), specifier)).startsWith("..")) {
      faults.push(`${relative(root, path)}: ${specifier} leaves the package`);
    } else if (name === "core") checkCore(path, specifier, source);
  } else if (specifier.startsWith("#")) {
    // A name that the package gives to a part of itself.
  } else if (specifier.startsWith("node:")) {
    if (name === "core" && NOT_IN_CORE.includes(specifier)) {
      faults.push(`${relative(root, path)}: core knows no socket, but imports ${specifier}`);
    }
  } else if (
    !PACKAGES[name].some((allowed) => specifier === allowed || specifier.startsWith(`${allowed}/`))
  ) {
    faults.push(`${relative(root, path)}: packages/${name} may not import ${specifier}`);
  }
}

for (const name of Object.keys(PACKAGES)) {
  const source = join(root, "packages", name, "src");
  const folders = readdirSync(source, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  if (name === "core") {
    for (const { name: folder } of folders) {
      if (!CORE_ORDER.includes(folder))
        faults.push(`packages/core/src/${folder} has no place in the import order`);
    }
  }
  for (const path of sources(source)) {
    for (const specifier of importsOf(path)) checkPackage(path, specifier, name, source);
  }
}

for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exit(1);
console.log("imports point one way");
