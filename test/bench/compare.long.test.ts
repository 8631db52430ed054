import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Ended, Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const results = mkdtempSync(join(tmpdir(), "tritonjs-bench-"));
afterAll(() => rmSync(results, { recursive: true, force: true }));

/** Shortest possible runs: the test checks which results appear, not their size. */
const env = { ...process.env, BENCH_PAIRS: "1", BENCH_SECONDS: "0.01", BENCH_RESULTS: results };

const node = (...args: readonly string[]): Promise<Ended> =>
  new Program(process.execPath, args, { cwd: repositoryRoot, env }).ended;

const compare = (...args: readonly string[]) => node("bench/compare.mjs", ...args);

describe("npm run bench -- compare", () => {
  it("runs a case of this tree against a built tree and writes the results", async () => {
    const { code, stdout } = await compare(repositoryRoot, "in-process-1");
    expect(code).toBe(0);
    expect(stdout).toContain("in-process-1");
    const { machine, figures } = JSON.parse(readFileSync(join(results, "compare.json"), "utf8"));
    expect(machine.node).toBe(process.version);
    expect(figures.revision).toBe(repositoryRoot);
    const cases = Object.entries<Record<string, number>>(figures.rows);
    expect(cases.map(([name]) => name)).toEqual(["in-process-1"]);
    for (const [, row] of cases) expect(row.ratio).toBeGreaterThan(0);
  });

  it("lists its cases when it gets no case or an unknown one", async () => {
    const asked = await compare(repositoryRoot, "in-process", "teleport");
    expect(asked).toMatchObject({ code: 1, stdout: "" });
    expect(asked.stderr).toMatch(/^no case teleport\nusage: .*in-process-64/);
    expect((await compare()).stderr).toMatch(/^usage: /);
  });

  it("reports an unknown revision", async () => {
    const { code, stderr } = await compare("no-such-revision", "in-process");
    expect(code).not.toBe(0);
    expect(stderr).toContain("'no-such-revision' is neither a revision");
  });
});

it("npm run bench lists its benchmarks when it gets an unknown one", async () => {
  const { code, stderr } = await node("bench/run.mjs", "teleport");
  expect(code).toBe(1);
  expect(stderr).toMatch(/^no benchmark teleport; there are compare, .*in-process.*startup/);
});
