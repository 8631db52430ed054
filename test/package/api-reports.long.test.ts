import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repositoryRoot } from "../support/repository.js";

test("the API reports list the current exports of the packages", () => {
  const { status, stderr } = spawnSync(process.execPath, ["scripts/api-reports.mjs", "--check"], {
    cwd: repositoryRoot,
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  expect(status).toBe(0);
}, 600_000);

test("the root of core exports at most 80 names", () => {
  const report = readFileSync(join(repositoryRoot, "packages/core/api-report.md"), "utf8");
  const [, root] = report.split(/^## /m);
  const declared = root!.matchAll(
    /^export (?:declare )?(?:abstract )?(?:const|function|class|interface|type) (\w+)/gm,
  );
  const passedOn = root!.matchAll(/^export \{ (\w+) \}/gm);
  const names = new Set([...declared, ...passedOn].map(([, name]) => name));
  expect(names.size).toBeGreaterThan(60);
  expect(names.size).toBeLessThanOrEqual(80);
});
