import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { classifyModel, normalizeModel } from "../../examples/model-repository/flower-models.js";
import { promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const folder = join(repositoryRoot, "examples", "model-repository");

it("the model repository example serves ONNX models and an ensemble from a directory", async () => {
  const { code, stdout } = await Program.node(join(folder, "dist", "main.js"), [], repositoryRoot).ended;
  expect(code).toBe(0);
  expect(stdout).toMatch(promisedOutput("model-repository"));
});

it.each([
  ["normalize", normalizeModel],
  ["classify", classifyModel],
])("the script makes the model %s as it is checked in", async (name, model) => {
  const checkedIn = await readFile(join(folder, "models", name, "1", "model.onnx"));
  expect(Buffer.from(model()).equals(checkedIn)).toBe(true);
});
