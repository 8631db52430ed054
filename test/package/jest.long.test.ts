import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Program } from "../support/program.js";
import { npmTool } from "./foreign-tools.js";
import { PackedPackages, type Project } from "./packed-packages.js";

const INSTALL_TIMEOUT_MS = 300_000;

const jest = npmTool("Jest", "jest-30", "jest@~30.2.0", join("jest", "bin", "jest.js"));

const packed = new PackedPackages();
let project: Project;
beforeAll(async () => {
  await packed.pack();
  project = await packed.install("jest", ["protocol", "core"]);
}, INSTALL_TIMEOUT_MS);
afterAll(() => packed.remove(), INSTALL_TIMEOUT_MS);

it.skipIf(jest.path === undefined)(
  `a test of Jest binds a model and calls it, also with faked timers${jest.note}`,
  async () => {
    project.write(
      "double.test.mjs",
      `import { jest } from "@jest/globals";
      import { batch, Triton } from "@tritonjs/core";
      test.each([false, true])("doubles, with faked timers: %s", async (isFaked) => {
        if (isFaked) jest.useFakeTimers();
        const triton = new Triton();
        const double = triton.bind({
          modelName: "double",
          inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
          outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
          inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
          config: { maxBatchSize: 8, batcher: { maxQueueDelayMicroseconds: 1000 } },
        });
        expect((await double.inferSample({ x: [4] })).y.get(0)).toBe(8);
        await triton.close();
      });`,
    );
    const program = new Program(
      process.execPath,
      [
        "--experimental-vm-modules",
        jest.path!,
        "--rootDir",
        project.folder,
        "--testMatch",
        "**/*.test.mjs",
        "--no-watchman",
        "--cacheDirectory",
        join(project.folder, ".jest"),
      ],
      { cwd: project.folder },
    );
    const { code, stderr } = await program.ended;
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  },
  INSTALL_TIMEOUT_MS,
);
