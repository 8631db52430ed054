import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "rolldown";
import { root } from "../../scripts/run.mjs";

const folders = {
  core: "core",
  http: "http",
  grpc: "grpc",
  client: "client",
  cli: "cli",
  "grpc-messages": "grpc-messages",
  tools: "tools",
  dashboard: "dashboard",
};

/** Imports a built package of a revision whose root is `tree`: `importOf(tree, "grpc", "proto/codec")`. */
export function importOf(tree, name, file = "index") {
  const path = join(tree ?? root, "packages", folders[name], "dist", `${file}.js`);
  return import(pathToFileURL(path).href);
}

/** Imports the settings of a process' memory: older revisions have them in core. */
export function importProcessMemory(tree) {
  const isInCli = existsSync(join(tree ?? root, "packages/cli/dist/serve/process-memory.js"));
  return isInCli ? importOf(tree, "cli", "serve/process-memory") : importOf(tree, "core", "frontend");
}

/** Imports an unpublished module of a package. Compiles its source first. */
export async function importSource(tree, name, file) {
  const folder = join(tree ?? root, "packages", folders[name]);
  const target = join(folder, "node_modules", ".cache", "bench", `${file}.mjs`);
  await build({
    input: join(folder, "src", `${file}.ts`),
    platform: "node",
    external: /^[^.#/]/,
    resolve: { extensionAlias: { ".js": [".ts", ".js"] } },
    output: { file: target },
  });
  return import(pathToFileURL(target).href);
}

/** Resolves npm packages as a package of the revision would. */
export const requireOf = (tree, name) =>
  createRequire(join(tree ?? root, "packages", folders[name], "package.json"));

/** The generated protobuf messages with their codec. Older revisions have them in the package `grpc`. */
export async function codecOf(tree) {
  if (existsSync(join(tree ?? root, "packages", "grpc-messages"))) return importOf(tree, "grpc-messages");
  const generated = join(tree ?? root, "packages", "grpc", "src", "proto", "generated", "index.js");
  const { inference } = (await import(pathToFileURL(generated).href)).default;
  return { inference, ...(await importSource(tree, "grpc", "proto/codec")) };
}
