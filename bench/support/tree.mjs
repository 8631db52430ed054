import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../../scripts/run.mjs";

const folders = { core: "core", http: "http", grpc: "grpc" };

/** Imports a built package of a revision whose root is `tree`: `importOf(tree, "grpc", "proto/codec")`. */
export function importOf(tree, name, file = "index") {
  const path = join(tree ?? root, "packages", folders[name], "dist", `${file}.js`);
  return import(pathToFileURL(path).href);
}

/** Resolves packages of npm as a package of the revision would. */
export const requireOf = (tree, name) =>
  createRequire(join(tree ?? root, "packages", folders[name], "package.json"));

/** The generated protobuf messages, and how they are read and written. */
export async function codecOf(tree) {
  const generated = join(tree ?? root, "packages", "grpc", "src", "proto", "generated", "index.js");
  const { inference } = (await import(pathToFileURL(generated).href)).default;
  return { inference, ...(await importOf(tree, "grpc", "proto/codec")) };
}
