import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { graphFiles, layersFiles } from "../../examples/tfjs-model/model-files.js";
import { trainFlowers } from "../../examples/tfjs-model/train-flowers.js";
import { expectPromisedOutput } from "../support/example-run.js";
import { repositoryRoot } from "../support/repository.js";

const examples = join(repositoryRoot, "examples");

it("javascript-ensemble runs JavaScript before and after an ONNX model", async () => {
  await expectPromisedOutput("javascript-ensemble");
});

it("encrypted-models decrypts a model with the matching key only", async () => {
  await expectPromisedOutput("encrypted-models");
});

it("tfjs-model runs a GraphModel and a LayersModel", async () => {
  await expectPromisedOutput("tfjs-model");
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
