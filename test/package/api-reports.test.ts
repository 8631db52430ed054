import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

const root = new URL("../../", import.meta.url).pathname;

test("the API reports list what the packages export today", () => {
  const { status, stderr } = spawnSync(process.execPath, ["scripts/api-reports.mjs", "--check"], {
    cwd: root,
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  expect(status).toBe(0);
}, 180_000);
