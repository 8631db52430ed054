import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Triton } from "@tritonjs/core";
import { expect, it } from "vitest";
import { run } from "../../src/run.js";
import { TemporaryFolder } from "../support/temporary-folder.js";
import { TestTerminal } from "../support/test-terminal.js";

it("init writes a repository that passes the check and serves at once", async () => {
  await using folder = await TemporaryFolder.create();
  const repository = join(folder.path, "models");
  expect(await run(["init", repository], new TestTerminal())).toBe(0);
  const checked = new TestTerminal();
  expect(await run(["config", "check", repository], checked)).toBe(0);
  expect(checked.output).toBe("1 model: 0 errors, 0 warnings\n");
  await using triton = new Triton({ modelRepository: repository });
  await triton.ready();
  const outputs = await triton.infer("classifier", { features: [[0, 0, 0, 0]] });
  expect(Array.from(outputs.probabilities!.data as Float32Array)).toEqual(Array(3).fill(Math.fround(1 / 3)));
  expect(triton.service.model("classifier", "").labels.get("probabilities")).toEqual([
    "small",
    "medium",
    "large",
  ]);
});

it("init does not overwrite existing files", async () => {
  await using folder = await TemporaryFolder.create({ "classifier/config.pbtxt": "mine" });
  const terminal = new TestTerminal();
  expect(await run(["init", folder.path], terminal)).toBe(1);
  expect(await readFile(join(folder.path, "classifier/config.pbtxt"), "utf8")).toBe("mine");
  expect(terminal.errors).toBe(`${join(folder.path, "classifier/config.pbtxt")} exists: kept as it is\n`);
});

it("init refuses a template that it does not have", async () => {
  const terminal = new TestTerminal();
  expect(await run(["init", "--template", "website"], terminal)).toBe(1);
  expect(terminal.errors).toContain("Allowed choices are repository, app, service");
});

it("the package contains the sample model that its script makes", async () => {
  const script = fileURLToPath(new URL("../../scripts/generate-sample.mjs", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [script, "--print"]);
  const source = fileURLToPath(new URL("../../src/commands/sample-model.ts", import.meta.url));
  expect(await readFile(source, "utf8")).toBe(stdout);
});
