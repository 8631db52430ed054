/* `npm start`: installs, builds and runs the quick start. Options go to it: `npm start -- --once`. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { install } from "./install.mjs";
import { build, root } from "./run.mjs";

install();
build("examples/quickstart");

const program = join(root, "examples", "quickstart", "dist", "main.js");
const child = spawn(process.execPath, [program, ...process.argv.slice(2)], { cwd: root, stdio: "inherit" });
// Ctrl-C also reaches the child directly. The child drains, and this program exits with its exit code.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("exit", (code, signal) => process.exit(code ?? (signal === null ? 0 : 1)));
