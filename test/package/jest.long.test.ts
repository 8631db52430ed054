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
  project = await packed.install("jest", ["protocol", "core", "testing"]);
}, INSTALL_TIMEOUT_MS);
afterAll(() => packed.remove(), INSTALL_TIMEOUT_MS);

/** Where CI is set, a snapshot that does not exist fails its test, and these tests write their first one. */
const snapshotsAreWritten = { CI: undefined };

/** Runs one test file of the project with Jest. */
function runJest(name: string): Program {
  return new Program(
    process.execPath,
    [
      "--experimental-vm-modules",
      jest.path!,
      "--rootDir",
      project.folder,
      "--testMatch",
      `**/${name}.test.mjs`,
      "--no-watchman",
      "--testTimeout=120000",
      "--cacheDirectory",
      join(project.folder, ".jest"),
    ],
    { cwd: project.folder, env: snapshotsAreWritten },
  );
}

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
    const program = runJest("double");
    const { code, stderr } = await program.ended;
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  },
  INSTALL_TIMEOUT_MS,
);

it.skipIf(jest.path === undefined)(
  `Jest's expect gets the matchers of tensors, which fail with the place that differs${jest.note}`,
  async () => {
    project.write(
      "matchers.test.mjs",
      `import { tensorMatchers } from "@tritonjs/testing";
      import { Tensor } from "@tritonjs/protocol";
      const y = Tensor.fromElements("FP32", [2], Float32Array.of(1, 2));
      expect.extend(tensorMatchers);
      test("equal tensors", async () => {
        expect({ y }).toMatchTensors({ y: [1, 2.5] }, { absolute: 0.5 });
        expect(y).toMatchTensor([1, 2]);
        expect(y).not.toMatchTensor([1, 3]);
        await expect({ y }).toMatchTensorSnapshot(new URL("./y.json", import.meta.url));
        await expect({ y }).toMatchTensorSnapshot(new URL("./y.json", import.meta.url));
      });
      test("planted difference", () => expect({ y }).toMatchTensors({ y: [1, 3] }));`,
    );
    const { code, stderr } = await runJest("matchers").ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/\u2713 equal tensors/);
    expect(stderr).toMatch(/\u2715 planted difference/);
    expect(stderr).toMatch(/the tensors differ:\s+'y'/);
  },
  INSTALL_TIMEOUT_MS,
);

it("a test of node:test compares tensors by assertions", async () => {
  project.write(
    "assertions.mjs",
    `import assert from "node:assert";
    import test from "node:test";
    import { assertTensors, assertTensorSnapshot } from "@tritonjs/testing";
    import { Tensor } from "@tritonjs/protocol";
    const y = Tensor.fromElements("FP32", [2], Float32Array.of(1, 2));
    test("tensors", async () => {
      assertTensors({ y }, { y: [1, 2.5] }, { absolute: 0.5 });
      assert.throws(() => assertTensors({ y }, { y: [1, 3] }), /y/);
      await assertTensorSnapshot({ y }, new URL("./z.json", import.meta.url));
      await assertTensorSnapshot({ y }, new URL("./z.json", import.meta.url));
    });`,
  );
  const program = new Program(process.execPath, ["--test", "assertions.mjs"], {
    cwd: project.folder,
    env: snapshotsAreWritten,
  });
  const { code, stdout } = await program.ended;
  expect({ code, stdout: code === 0 ? "" : stdout }).toEqual({ code: 0, stdout: "" });
});
