import { join } from "node:path";
import { readPrototxt } from "@tritonjs/core/config";
import { expect, it } from "vitest";
import { sampleModel } from "../../src/commands/sample-model.js";
import { run } from "../../src/run.js";
import { TemporaryFolder } from "../support/temporary-folder.js";
import { TestTerminal } from "../support/test-terminal.js";

it("config show prints the completed configuration as config.pbtxt or as JSON", async () => {
  await using folder = await TemporaryFolder.create({ "c/1/model.onnx": sampleModel() });
  const text = new TestTerminal();
  expect(await run(["config", "show", join(folder.path, "c")], text)).toBe(0);
  expect(readPrototxt(text.output)).toMatchObject({
    name: "c",
    backend: "onnxruntime",
    maxBatchSize: 4,
    input: [{ name: "features", dataType: "TYPE_FP32", dims: [4] }],
  });
  const json = new TestTerminal();
  expect(await run(["config", "show", "--json", join(folder.path, "c")], json)).toBe(0);
  expect(JSON.parse(json.output)).toMatchObject({ name: "c", max_batch_size: 4 });
});

it("config show fails with the reason when there is no configuration", async () => {
  await using folder = await TemporaryFolder.create({ "c/1/": "" });
  const terminal = new TestTerminal();
  expect(await run(["config", "show", join(folder.path, "c")], terminal)).toBe(1);
  expect(terminal.output).toBe("");
  expect(terminal.errors).toContain("Could not determine backend for model 'c'");
  expect(await run(["config", "show", join(folder.path, "d")], terminal)).toBe(1);
  expect(terminal.errors).toContain("cannot find the model directory");
});
