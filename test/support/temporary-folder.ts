import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

/**
 * Runs once: gives the tests and the programs that they start a temporary folder of their own, which is removed after
 * the last test. So a program that ends before it cleans up leaves nothing behind. Names what was left in it.
 */
export default function makeTemporaryFolder(): (() => void) | undefined {
  const prefix = "tritonjs-tests-";
  // Vitest calls this for each project of the configuration. They share the folder of the first one.
  if (basename(tmpdir()).startsWith(prefix)) return undefined;
  const folder = mkdtempSync(join(tmpdir(), prefix));
  // Unix reads the first variable, Windows the others.
  for (const name of ["TMPDIR", "TEMP", "TMP"]) process.env[name] = folder;
  return () => {
    const left = readdirSync(folder);
    if (left.length > 0) console.warn(`left in the temporary folder, and removed: ${left.sort().join(", ")}`);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };
}
