import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasPython, patientPython, withoutPython } from "../../../../test/support/python.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

/** A backend whose models are files with a number. Its helper is in a folder `utils`, as that of vLLM's backend. */
const scaling = `import json, os
import numpy as np
import triton_python_backend_utils as pb_utils
from utils.reading import read

class TritonPythonModel:
    @classmethod
    def auto_complete_config(cls, config):
        config.add_input({"name": "X", "data_type": "TYPE_FP32", "dims": [-1]})
        config.add_output({"name": "Y", "data_type": "TYPE_FP32", "dims": [-1]})
        config.set_max_batch_size(read(pb_utils.get_model_dir(), "rows", 0))
        return config

    def initialize(self, args):
        config = json.loads(args["model_config"])
        assert config["runtime"] == "model.py", config["runtime"]
        assert os.path.basename(args["model_repository"]) == args["model_name"]
        self.factor = read(pb_utils.get_model_dir(), "factor", None)

    def execute(self, requests):
        def answer(request):
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            return pb_utils.InferenceResponse([pb_utils.Tensor("Y", x * np.float32(self.factor))])
        return [answer(request) for request in requests]
`;

const reading = `import json, os

def read(directory, key, otherwise):
    with open(os.path.join(directory, "model.json")) as file:
        return json.load(file).get(key, otherwise)
`;

/** The imports of vLLM's backend for Triton, up to the first one of vLLM, and the names that its modules use. */
const vllm = `import asyncio
import json
import triton_python_backend_utils as pb_utils

NAMES = [pb_utils.TritonModelException, pb_utils.get_model_dir, pb_utils.Logger, pb_utils.TritonError.UNAVAILABLE,
         pb_utils.using_decoupled_model_transaction_policy, pb_utils.MetricFamily.HISTOGRAM, pb_utils.unload_model,
         pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL, pb_utils.triton_string_to_numpy]
from vllm_that_nobody_has.engine.arg_utils import AsyncEngineArgs

class TritonPythonModel:
    @classmethod
    def auto_complete_config(cls, config):
        return config
`;

describe.skipIf(!hasPython)(`models of Python backends${withoutPython}`, () => {
  let backends: RepositoryOnDisk;
  let models: RepositoryOnDisk;
  let triton: Triton;
  const lines: string[] = [];

  beforeAll(async () => {
    backends = await RepositoryOnDisk.create({
      "scale/model.py": scaling,
      "scale/utils/reading.py": reading,
      "llm/model.py": vllm,
      "classless/model.py": "class Model:\n    pass\n",
      "throwing/model.py": "raise RuntimeError('no licence')\n",
      "wrong/model.py": "class TritonPythonModel:\n    def auto_complete_config(config):\n        return 3\n",
    });
    models = await RepositoryOnDisk.create({
      "twice/config.pbtxt": 'backend: "scale"',
      "twice/1/model.json": '{ "factor": 2 }',
      "rows/config.pbtxt": 'backend: "scale" runtime: "model.py"',
      "rows/1/model.json": '{ "factor": 3, "rows": 4 }',
      "llama/config.pbtxt": 'backend: "llm" instance_group [ { count: 1 kind: KIND_MODEL } ]',
      "llama/1/model.json": "{}",
      "classless/config.pbtxt": 'backend: "classless"',
      "classless/1/model.json": "{}",
      "throwing/config.pbtxt": 'backend: "throwing"',
      "throwing/1/model.json": "{}",
      "wrong/config.pbtxt": 'backend: "wrong"',
      "wrong/1/model.json": "{}",
    });
    const write = (message: string) => void lines.push(message);
    triton = new Triton({
      logger: { error: write, warn: write, info: write, debug: write },
      extensions: [
        repository({
          modelRepository: models.path,
          backendDirectory: backends.path,
          exitOnError: false,
          backendConfig: { ...patientPython, llm: { executable: process.env.TRITONJS_PYTHON ?? "python3" } },
        }),
      ],
    });
    await triton.ready();
  });

  afterAll(async () => {
    await triton.close();
    await models[Symbol.asyncDispose]();
    await backends[Symbol.asyncDispose]();
  });

  const reasonOf = async (name: string) => {
    const rows = await serviceOf(triton).repositoryIndex(false);
    return rows.find((row) => row.name === name)?.reason ?? "";
  };

  it("share its program and the modules beside it, and have the directories of their versions", async () => {
    const twice = await triton.infer("twice", { X: [1, 2] });
    expect(Array.from(twice.Y!.data as Float32Array)).toEqual([2, 4]);
    const rows = await triton.infer("rows", { X: [[1], [2]] });
    expect(Array.from(rows.Y!.data as Float32Array)).toEqual([3, 6]);
    expect(serviceOf(triton).model("rows", "").config.maxBatchSize).toBe(4);
  });

  it("name the Python module that is not installed, the program that lacks it, and what to do", async () => {
    const reason = await reasonOf("llama");
    expect(reason).toMatch(
      /the backend 'llm' of model 'llama' needs the Python module 'vllm_that_nobody_has', which .*python3? \(Python 3\.[\d.]+\) cannot import/,
    );
    expect(reason).toContain("ModuleNotFoundError: No module named 'vllm_that_nobody_has'");
    // The log has the place too.
    expect(lines.join("\n")).toMatch(/llm\/model\.py\(\d+\)/);
  });

  it("name the fault of a program without the class, or that throws when it is imported", async () => {
    expect(await reasonOf("classless")).toContain("TritonPythonModel");
    expect(await reasonOf("throwing")).toContain("no licence");
  });

  it("have Triton's rules for auto_complete_config", async () => {
    expect(await reasonOf("wrong")).toContain(
      "auto_complete_config function in model 'wrong' must return a valid pb.ModelConfig object.",
    );
  });
});
