import { Triton } from "@tritonjs/core";
import { repository as withRepository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { expect, it } from "vitest";
import { readLightgbm } from "../../packages/backends/src/trees/lightgbm.js";
import { identityOnnx } from "../support/onnx-models.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";

it("an ensemble of 14,000 steps is checked in a time proportional to its steps", async () => {
  const tensor = (kind: string, name: string) => `${kind} { name: "${name}" data_type: TYPE_FP32 dims: 1 }`;
  // The longest chain of steps that a configuration of 2 MB has room for, the last step first.
  const steps = Array.from({ length: 14_000 }, (_, i) => {
    const from = 13_999 - i;
    return `step { model_name: "id" model_version: -1 input_map { key: "x" value: "t${from}" } output_map { key: "y" value: "t${from + 1}" } }`;
  });
  await using repository = await RepositoryOnDisk.create({
    "id/1/model.onnx": identityOnnx("FLOAT", [1]),
    "steps/1/": "",
    "steps/config.pbtxt": `platform: "ensemble" ${tensor("input", "t0")} ${tensor("output", "t14000")} ensemble_scheduling { ${steps.join("\n")} }`,
  });
  await using triton = new Triton({ extensions: [withRepository({ modelRepository: repository.path })] });
  await triton.ready();
  expect(serviceOf(triton).isModelReady("steps", "")).toBe(true);
});

it("a LightGBM file of more than 1,048,576 trees is refused", () => {
  const file = Buffer.from(`tree\n${"Tree=\n".repeat(2 ** 20 + 1)}`);
  expect(() => readLightgbm(file, {} as never)).toThrow("expected at most 1048576 trees");
});
