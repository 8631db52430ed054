import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../../scripts/run.mjs";

/** Where parts were before the packages were joined: the package, and the part's folder in its `dist`. */
const BEFORE = {
  "backends/onnxruntime": ["core", "backends/onnxruntime"],
  "http/dashboard": ["dashboard", ""],
  "protocol/grpc": ["grpc-messages", ""],
};

/**
 * Imports a built module of a revision whose root is `tree`: `importOf(tree, "http", "dashboard/index")` imports the
 * subpath `dashboard` of `http`, also where it was a package of its own.
 */
export function importOf(tree, name, file = "index") {
  const packages = join(tree ?? root, "packages");
  let path = join(packages, name, "dist", `${file}.js`);
  if (!existsSync(path)) {
    const [before, folder] = BEFORE[`${name}/${file.replace(/\/index$/, "")}`];
    path = join(packages, before, "dist", folder, "index.js");
  }
  return import(pathToFileURL(path).href);
}

/** Options of a server with the models of directories: an older revision has them in core. */
export async function withRepository(tree, options) {
  const isPackage = existsSync(join(tree ?? root, "packages/repository/dist/config.js"));
  return isPackage ? { extensions: [(await importOf(tree, "repository")).repository(options)] } : options;
}

/** Imports the settings of a process' memory: older revisions have them in core. */
export function importProcessMemory(tree) {
  const isInCli = existsSync(join(tree ?? root, "packages/cli/dist/serve/process-memory.js"));
  return isInCli ? importOf(tree, "cli", "serve/process-memory") : importOf(tree, "core", "frontend");
}

/** Resolves npm packages as a package of the revision would. */
export const requireOf = (tree, name) => createRequire(join(tree ?? root, "packages", name, "package.json"));

/** The generated protobuf messages with their codec. */
export const codecOf = (tree) => importOf(tree, "protocol", "grpc/index");
