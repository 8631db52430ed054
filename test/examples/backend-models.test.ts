import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { graphFiles, layersFiles } from "../../examples/tfjs-model/model-files.js";
import { trainFlowers } from "../../examples/tfjs-model/train-flowers.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const examples = join(repositoryRoot, "examples");

/** Runs an example to its end and returns its output lines. */
async function run(example: string): Promise<{ code: number | null; lines: string[] }> {
  const program = Program.node(join(examples, example, "dist", "main.js"), [], repositoryRoot);
  onTestFinished(() => program.signal("SIGKILL"));
  const { code, stdout } = await program.ended;
  return { code, lines: stdout.trimEnd().split("\n") };
}

it("javascript-ensemble runs JavaScript before and after an ONNX model", async () => {
  expect(await run("javascript-ensemble")).toEqual({
    code: 0,
    lines: [
      "5.1,3.5,1.4,0.2: setosa",
      "5.5,2.3,3.3,1.0: versicolor",
      "7.7,2.6,6.9,2.3: virginica",
      "in ensemble 'flowers', a flower has four measures, got '5.1,3.5,one'",
      "flowers_read_total 3",
    ],
  });
});

it("encrypted-models decrypts a model with the matching key only", async () => {
  expect(await run("encrypted-models")).toEqual({
    code: 0,
    lines: ["6 x 7 = 42", "Invalid argument: '1/model.js' of model 'secret' cannot be opened with its key"],
  });
});

it("tfjs-model runs a GraphModel and a LayersModel", async () => {
  expect(await run("tfjs-model")).toEqual({
    code: 0,
    lines: [
      "5.1, 3.5, 1.4, 0.2: setosa",
      "6.4, 3.2, 4.5, 1.5: versicolor",
      "7.7, 2.6, 6.9, 2.3: virginica",
      "from the layers: hidden_input [-1,4], scores [-1,3]",
      "virginica: true",
    ],
  });
});

it("the script trains the TensorFlow.js models as they are checked in", async () => {
  const trained = await trainFlowers(await readFile(join(examples, "quickstart/iris/iris.csv"), "utf8"));
  for (const [name, files] of [
    ["flowers-layers", layersFiles(trained)],
    ["flowers-graph", graphFiles(trained)],
  ] as const) {
    for (const [file, content] of files) {
      const checkedIn = await readFile(join(examples, "tfjs-model/models", name, "1", file));
      expect(Buffer.from(content).equals(checkedIn), `${name}/${file}`).toBe(true);
    }
  }
});
