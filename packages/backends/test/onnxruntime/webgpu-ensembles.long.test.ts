import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { matrixOnnx } from "../../../../test/support/onnx-models.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { vulkanEnvironment, vulkanNote } from "../../../../test/support/vulkan.js";

const run = promisify(execFile);

describe.skipIf(vulkanEnvironment === undefined)(
  `an ensemble of ONNX models with WebGPU on the engine 'native'${vulkanNote}`,
  () => {
    it("keeps tensors between its steps on the device, and answers many requests at once", async () => {
      await using folder = await RepositoryOnDisk.create({ "matrix.onnx": matrixOnnx() });
      const program = fileURLToPath(new URL("../fixtures/webgpu-ensemble.mjs", import.meta.url));
      const { stdout } = await run(process.execPath, [program, join(folder.path, "matrix.onnx")], {
        env: vulkanEnvironment,
      });
      const { provider, oneByOne, wrong, warnings } = JSON.parse(stdout.trim().split("\n").at(-1)!);
      expect([provider, wrong, warnings]).toEqual(["webgpu", [], []]);
      // Ten requests one by one: ten inputs of the first model, and none between the steps.
      expect(oneByOne.map(([toDevice]: readonly number[]) => toDevice)).toEqual([10, 0, 0]);
    });
  },
);
