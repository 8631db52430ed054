import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { repositoryRoot } from "../support/repository.js";

const { glibcVersionRuntime } = (process.report.getReport() as { header: { glibcVersionRuntime?: string } })
  .header;
const note = glibcVersionRuntime === undefined ? " (skipped: the C library is not glibc)" : "";

/** What a program of this folder printed, with the limits of `serve` or without. */
async function printed<Result>(program: string, limits: "limited" | "default"): Promise<Result> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--expose-gc", join(repositoryRoot, "test/recovery", program), limits],
    { cwd: repositoryRoot, env: { PATH: process.env.PATH } },
  );
  return JSON.parse(stdout) as Result;
}

/** Bytes that six threads keep after a burst of 24 MiB each. */
const keptAfterBursts = (limits: "limited" | "default") =>
  printed<{ limited: boolean; kept: number }>("burst-threads.mjs", limits);

/** Arenas of malloc in a program with many more threads than processors. */
const countArenas = (limits: "limited" | "default") =>
  printed<{ limited: boolean; arenas: number }>("count-arenas.mjs", limits);

it.skipIf(glibcVersionRuntime === undefined)(
  `threads return the memory of a burst, all but the free memory that an arena may keep${note}`,
  async () => {
    const limited = await keptAfterBursts("limited");
    const byDefault = await keptAfterBursts("default");
    expect([limited.limited, byDefault.limited]).toEqual([true, false]);
    expect(limited.kept).toBeLessThan(6 * 12 * 2 ** 20);
    expect(limited.kept).toBeLessThan(byDefault.kept / 2);
  },
);

it.skipIf(glibcVersionRuntime === undefined)(`many threads share a few arenas${note}`, async () => {
  const limited = await countArenas("limited");
  const byDefault = await countArenas("default");
  expect([limited.limited, byDefault.limited]).toEqual([true, false]);
  expect(limited.arenas).toBeLessThan(byDefault.arenas);
});
