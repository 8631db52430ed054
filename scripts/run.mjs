import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Root of the repository. */
export const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** Runs a program in the repository. If it fails, exits with its exit code. */
export function run(command, args, options = {}) {
  const { status, signal, error } = spawnSync(command, args, { cwd: root, stdio: "inherit", ...options });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? (signal === "SIGINT" ? 130 : 1));
}

/** Runs a JavaScript program with this Node, or with the given one. */
export function runNode(script, args = [], { node = process.execPath, ...options } = {}) {
  run(node, [script, ...args], options);
}

/** Path of a program of a development dependency. */
export function tool(name, path) {
  return join(root, "node_modules", name, path);
}

/** Compiles a project and its references; by default everything, tests included. */
export function checkTypes(project = ".") {
  runNode(tool("typescript", "bin/tsc"), ["-b", project]);
}

/** Joins the compiled modules of each package to the files that it publishes. */
export function bundle() {
  runNode(join(root, "scripts", "bundle.mjs"));
}

/** Compiles a project and its references, then bundles the packages. */
export function build(project) {
  checkTypes(project);
  bundle();
}
