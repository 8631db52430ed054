import { sample, Triton } from "@tritonjs/core";
import { expect, it, onTestFinished } from "vitest";
import { echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";

it("a line about a request has its model, version, id and error code as fields", async () => {
  const lines: unknown[][] = [];
  const at =
    (level: string) =>
    (...line: unknown[]) =>
      lines.push([level, ...line]);
  const logger = { error: at("E"), warn: at("W"), info: at("I"), debug: at("V"), takesSubjects: true };
  const triton = new Triton({ logger, logVerbose: 1 });
  onTestFinished(() => triton.close());
  const handle = triton.bind({
    modelName: "m",
    inputs: echoInputs,
    outputs: echoOutputs,
    config: { batching: false },
    inferFunc: sample(() => {
      throw new Error("broken");
    }),
  });
  await expect(handle.infer({ x: [1] }, { id: "a" })).rejects.toThrow();
  const about = { module: "model_lifecycle", model: "m", version: 1 };
  expect(lines).toContainEqual([
    "V",
    "a request to model 'm' version 1 failed: broken",
    { ...about, code: "INTERNAL", request_id: "a" },
  ]);
});
