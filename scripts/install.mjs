import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "./run.mjs";

/** The workspace's package manager. npm brings it, so a machine needs only Node and npm. */
export const PNPM = "pnpm@12.21.0";

/** Installs the packages in the lockfile of a workspace, unless they are installed already. */
export function install(workspace = root) {
  const lock = readFileSync(join(workspace, "pnpm-lock.yaml"));
  const stamp = join(workspace, "node_modules", ".installed");
  const wanted = createHash("sha256").update(lock).digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  run("npx", ["--yes", PNPM, "install", "--frozen-lockfile"], {
    cwd: workspace,
    shell: process.platform === "win32",
  });
  writeFileSync(stamp, wanted);
}
