import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { repositoryRoot } from "../support/repository.js";
import { targetNames } from "./targets/index.js";

/** Enough that each target changes its good inputs in all ways, and few enough for a test. */
const RUNS = 2000;

test.each(targetNames)(
  "npm run fuzz -- %s finds nothing in some thousand inputs",
  { timeout: 600_000 },
  (target) => {
    const findings = mkdtempSync(join(tmpdir(), "tritonjs-fuzz-findings-"));
    onTestFinished(() => rmSync(findings, { recursive: true }));
    const options = ["--runs", String(RUNS), "--seed", "1", "--time", "60", "--corpus", findings];
    const { status, stdout, stderr } = spawnSync(process.execPath, ["scripts/fuzz.mjs", target, ...options], {
      cwd: repositoryRoot,
      encoding: "utf8",
    });
    expect(stderr).toBe("");
    expect(readdirSync(findings), stdout).toEqual([]);
    expect(status, stdout).toBe(0);
    expect(stdout).toMatch(new RegExp(`^${target}: seed 1, \\d+ inputs .* END$`, "m"));
  },
);
