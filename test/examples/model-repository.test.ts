import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { classifyModel, normalizeModel } from "../../examples/model-repository/flower-models.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const folder = join(repositoryRoot, "examples", "model-repository");

it("the model repository example serves ONNX models and an ensemble from a directory", async () => {
  const { code, stdout } = await Program.node(join(folder, "dist", "main.js"), [], repositoryRoot).ended;
  expect({ code, lines: stdout.trimEnd().split("\n") }).toEqual({
    code: 0,
    lines: [
      "classify 1 READY",
      "flowers 1 READY",
      "normalize 1 READY",
      "5.1, 3.5, 1.4, 0.2: setosa",
      "6.3, 3.3, 6, 2.5: virginica",
      "classify takes batches of 32",
    ],
  });
});

it.each([
  ["normalize", normalizeModel],
  ["classify", classifyModel],
])("the script makes the model %s as it is checked in", async (name, model) => {
  const checkedIn = await readFile(join(folder, "models", name, "1", "model.onnx"));
  expect(Buffer.from(model()).equals(checkedIn)).toBe(true);
});
