import { it } from "vitest";
import { expectPromisedOutput } from "../support/example-run.js";
import { hasTorch, withoutTorch } from "../support/python.js";

it.skipIf(!hasTorch)(`the TorchScript example serves its model${withoutTorch}`, () =>
  expectPromisedOutput("torchscript"),
);
