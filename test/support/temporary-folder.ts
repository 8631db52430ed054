import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

/** Begin of the names of folders that files of tests share until the end of the run. */
export const KEPT = "kept-";

/**
 * Runs once: gives the tests and the programs that they start a temporary folder of their own, which is removed after
 * the last test. So a program that ends before it cleans up leaves nothing behind. Names what was left in it. Names and
 * ends the programs that still run.
 */
export default function makeTemporaryFolder(): (() => void) | undefined {
  const prefix = "tritonjs-tests-";
  // Vitest calls this for each project of the configuration. They share the folder of the first one.
  if (basename(tmpdir()).startsWith(prefix)) return undefined;
  const folder = mkdtempSync(join(tmpdir(), prefix));
  // Unix reads the first variable, Windows the others.
  for (const name of ["TMPDIR", "TEMP", "TMP"]) process.env[name] = folder;
  return () => {
    for (const program of endPrograms(folder)) console.warn(`left running, and ended: ${program}`);
    const left = readdirSync(folder).filter((name) => !name.startsWith(KEPT));
    if (left.length > 0) console.warn(`left in the temporary folder, and removed: ${left.sort().join(", ")}`);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };
}

/**
 * Ends the programs that have the temporary folder, other than this process and the workers that it started. Linux only.
 *
 * @returns their command lines
 */
function endPrograms(folder: string): string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").flatMap((entry) => {
    const pid = Number(entry);
    if (Number.isNaN(pid) || pid === process.pid) return [];
    try {
      const read = (file: string) => readFileSync(join("/proc", entry, file), "utf8");
      const isWorker = new RegExp(`^PPid:\\t${process.pid}$`, "m").test(read("status"));
      if (isWorker || !read("environ").split("\0").includes(`TMPDIR=${folder}`)) return [];
      const command = read("cmdline").replaceAll("\0", " ").trim();
      process.kill(pid, "SIGKILL");
      return [command];
    } catch {
      // It has ended, or belongs to another user.
      return [];
    }
  });
}
