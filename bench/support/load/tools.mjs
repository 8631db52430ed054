import { spawn, spawnSync } from "node:child_process";

const known = new Map();

/** Whether a program is installed. */
export function isInstalled(command) {
  if (!known.has(command)) {
    const finder = process.platform === "win32" ? "where" : "which";
    known.set(command, spawnSync(finder, [command]).status === 0);
  }
  return known.get(command);
}

/** Runs a program and returns what it printed. */
export async function outputOf(command, args) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  const code = await new Promise((resolve) => child.once("close", resolve));
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${output.slice(-500)}`);
  return output;
}
