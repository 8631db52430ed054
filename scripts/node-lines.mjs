import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "./run.mjs";

/** The supported lines of Node. */
export const LINES = ["20", "22", "24", "26"];

const os = { win32: "win", linux: "linux", darwin: "darwin" }[process.platform];
const binary = process.platform === "win32" ? "bin/node.exe" : "bin/node";

/** Path of the newest Node of a line, which npm brings. Throws if npm cannot get it. */
export function nodeBinary(line) {
  const name = `node-${os}-${process.arch}`;
  return fromNpm(`node-${line}`, `${name}@${line}`, join(name, binary));
}

/** Other runtimes on which tests run, with their versions. */
export const RUNTIMES = { bun: "1.4.5", deno: "2.9.6" };

/** Arguments that a runtime takes before the name of a module. The signal of a request is aborted only if its client left. */
export function runtimeArguments(runtime) {
  return runtime === "deno" ? ["run", "--allow-all", "--unstable-no-legacy-abort"] : [];
}

/** Path of the program of a runtime, which npm brings. Throws if npm cannot get it. */
export function runtimeBinary(runtime) {
  const isArm = process.arch === "arm64";
  const isWindows = process.platform === "win32";
  const [name, file] =
    runtime === "bun"
      ? [`@oven/bun-${isWindows ? "windows" : process.platform}-${isArm ? "aarch64" : "x64"}`, "bin/bun"]
      : [`@deno/${process.platform}-${process.arch}${process.platform === "linux" ? "-glibc" : ""}`, "deno"];
  const version = RUNTIMES[runtime];
  return fromNpm(`${runtime}-${version}`, `${name}@${version}`, join(name, isWindows ? `${file}.exe` : file));
}

/**
 * Path of a file of a package, which npm installs to a cache of the repository.
 *
 * @param cache name of the folder in the cache
 * @param specifiers packages with their versions, separated by spaces
 * @param path path in `node_modules`
 */
export function fromNpm(cache, specifiers, path) {
  const folder = join(root, "node_modules", ".cache", cache);
  const file = join(folder, "node_modules", path);
  if (existsSync(file)) return file;
  const flags = [
    "--no-save",
    "--no-package-lock",
    "--no-audit",
    "--no-fund",
    "--ignore-scripts",
    "--prefer-offline",
  ];
  const args = ["install", ...flags, "--prefix", folder, ...specifiers.split(" ")];
  const { status, stderr } = spawnSync("npm", args, {
    cwd: root,
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  if (status !== 0 || !existsSync(file)) throw new Error(`cannot install ${specifiers}: ${stderr}`);
  return file;
}
