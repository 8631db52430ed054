import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { python } from "@tritonjs/backends/python";
import { Triton } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { identityOnnx } from "../support/onnx-models.js";
import { hasPython, withoutPython } from "../support/python.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";
import { openServer } from "./support/open-server.js";

const PYTHON_MODEL = `import os
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        value = np.array([os.environ.get("ORT_DISABLE_TELEMETRY", "").encode()], dtype=object)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("VALUE", value)]) for _ in requests]
`;

const hasCompiler = spawnSync("cc", ["--version"]).error === undefined;

describe("a client of a server that allows files of loads", () => {
  it.skipIf(!hasPython)(`runs a Python of its choice${withoutPython}`, async () => {
    await using outside = await RepositoryOnDisk.create({});
    const ran = join(outside.path, "ran");
    await outside.write({ "environment/bin/python3": `#!/bin/sh\necho > ${ran}\n` });
    await chmod(join(outside.path, "environment/bin/python3"), 0o755);
    await using models = await RepositoryOnDisk.create({
      "python/1/model.py": PYTHON_MODEL,
      "python/config.pbtxt": `backend: "python" input { name: "x" data_type: TYPE_FP32 dims: 1 }
        output { name: "VALUE" data_type: TYPE_STRING dims: 1 }`,
    });
    const { clients } = await openServer({
      triton: { modelRepository: models.path, modelControlMode: "explicit", allowModelFileOverride: true },
    });
    const parameters = { EXECUTION_ENV_PATH: { string_value: join(outside.path, "environment") } };
    const config = {
      backend: "python",
      parameters,
      input: [{ name: "x", data_type: "TYPE_FP32", dims: [1] }],
      output: [{ name: "VALUE", data_type: "TYPE_STRING", dims: [1] }],
    };
    await expect(clients[0].loadModel("python", { config })).rejects.toThrow();
    expect(existsSync(ran)).toBe(true);
  });

  it.skipIf(!hasCompiler)(
    `runs a library of its choice${hasCompiler ? "" : " (skipped: there is no cc)"}`,
    async () => {
      await using outside = await RepositoryOnDisk.create({});
      const ran = join(outside.path, "ran");
      const library = join(outside.path, "evil.so");
      const source = `#include <stdio.h>
__attribute__((constructor)) static void run(void) { fclose(fopen("${ran}", "w")); }`;
      expect(spawnSync("cc", ["-shared", "-fPIC", "-xc", "-o", library, "-"], { input: source }).status).toBe(
        0,
      );
      await using models = await RepositoryOnDisk.create({ "onnx/1/model.onnx": identityOnnx("FLOAT", [1]) });
      const { clients } = await openServer({
        triton: { modelRepository: models.path, modelControlMode: "explicit", allowModelFileOverride: true },
      });
      const parameters = { library: { string_value: library }, engine: { string_value: "native" } };
      await expect(
        clients[1].loadModel("onnx", { config: { backend: "onnxruntime", parameters } }),
      ).rejects.toThrow();
      expect(existsSync(ran)).toBe(true);
    },
  );
});

it.skipIf(!hasPython)(
  `the processes of Python models turn telemetry of ONNX Runtime off too${withoutPython}`,
  async () => {
    await using files = await RepositoryOnDisk.create({ "m/model.py": PYTHON_MODEL });
    await using triton = new Triton();
    const model = triton.bind({
      modelName: "m",
      inferFunc: python({ model: join(files.path, "m/model.py") }),
      inputs: [{ name: "X", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "VALUE", dtype: "BYTES", shape: [1] }],
      config: { maxBatchSize: 0 },
    });
    const { VALUE } = await model.infer({ X: [0] });
    expect(VALUE.data).toEqual([Buffer.from("1")].map((text) => new Uint8Array(text)));
  },
);
