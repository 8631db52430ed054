import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Ended, Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { targetNames } from "./targets/index.js";

/** Enough that each target changes its good inputs in all ways, and few enough for a test. */
const RUNS = 200;

const findings = mkdtempSync(join(tmpdir(), "tritonjs-fuzz-findings-"));
afterAll(() => rmSync(findings, { recursive: true }));

/** One run of all targets: they share the bundle, which takes as long as a small target. */
let ended: Ended;
beforeAll(async () => {
  const script = join(repositoryRoot, "scripts/fuzz.mjs");
  const options = ["--runs", String(RUNS), "--seed", "1", "--time", "30", "--corpus", findings];
  ended = await Program.node(script, ["all", ...options], repositoryRoot).ended;
}, 1_800_000);

test("npm run fuzz -- all ends without a finding", () => {
  expect(ended).toMatchObject({ code: 0, stderr: "" });
});

test.each(targetNames)("npm run fuzz -- %s finds nothing in hundreds of inputs", (target) => {
  expect(existsSync(join(findings, target)), ended.stdout).toBe(false);
  expect(ended.stdout).toMatch(new RegExp(`^${target}: seed 1, \\d\\d+ inputs .* 0 findings.* END$`, "m"));
});
