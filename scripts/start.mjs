/*
 * `npm start`: installs, builds and runs the quick start, or in a folder of `examples` that example. Options go to the
 * program: `npm start -- --once`. A script of an example may name another program of it, `start.mjs dist/hono.js`, and a
 * runtime that npm brings: `start.mjs bun dist/bun.js`.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { install } from "./install.mjs";
import { RUNTIMES, runtimeArguments, runtimeBinary } from "./node-lines.mjs";
import { build, root } from "./run.mjs";

const examples = join(root, "examples");
const here = process.cwd();
const folder = dirname(here) === examples ? here : join(examples, "quickstart");
const { main = "dist/main.js" } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const given = process.argv.slice(2);
const runtime = given[0] in RUNTIMES ? given.shift() : undefined;
const [file, options] = given[0]?.endsWith(".js") ? [given[0], given.slice(1)] : [main, given];

install();
build(folder);

const program = join(folder, file);
if (!existsSync(program)) throw new Error(`${folder} has no program to run: expected ${file}`);
const [binary, flags] =
  runtime === undefined ? [process.execPath, []] : [runtimeBinary(runtime), runtimeArguments(runtime)];
const child = spawn(binary, [...flags, program, ...options], { stdio: "inherit" });
// Ctrl-C also reaches the child directly. The child drains, and this program exits with its exit code.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("exit", (code, signal) => process.exit(code ?? (signal === null ? 0 : 1)));
