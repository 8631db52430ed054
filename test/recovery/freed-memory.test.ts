import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { repositoryRoot } from "../support/repository.js";

const { glibcVersionRuntime } = (process.report.getReport() as { header: { glibcVersionRuntime?: string } })
  .header;
const note = glibcVersionRuntime === undefined ? " (skipped: the C library is not glibc)" : "";

/** Bytes that six threads keep after a burst of 24 MiB each. */
async function keptAfterBursts(thresholds: "fixed" | "default"): Promise<{ fixed: boolean; kept: number }> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--expose-gc", join(repositoryRoot, "test/recovery/burst-threads.mjs"), thresholds],
    { cwd: repositoryRoot, env: { PATH: process.env.PATH } },
  );
  return JSON.parse(stdout) as { fixed: boolean; kept: number };
}

it.skipIf(glibcVersionRuntime === undefined)(
  `threads return the memory of a burst, all but the free memory that an arena may keep${note}`,
  async () => {
    const fixed = await keptAfterBursts("fixed");
    const byDefault = await keptAfterBursts("default");
    expect([fixed.fixed, byDefault.fixed]).toEqual([true, false]);
    expect(fixed.kept).toBeLessThan(6 * 12 * 2 ** 20);
    expect(fixed.kept).toBeLessThan(byDefault.kept / 2);
  },
);
