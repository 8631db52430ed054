import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { modelSettings } from "@tritonjs/backends/classes";
import { Triton } from "@tritonjs/core";
import { repository as withRepository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterEach, describe, expect, it } from "vitest";
import { hasPython, patientPython, pythonProgram, withoutPython } from "../../../../test/support/python.js";
import { type RepositoryFiles, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

let triton: Triton | undefined;
let repository: RepositoryOnDisk | undefined;

afterEach(async () => {
  await triton?.close();
  await repository?.[Symbol.asyncDispose]();
});

async function serve(files: RepositoryFiles, prepare?: (path: string) => void): Promise<Triton> {
  repository = await RepositoryOnDisk.create(files);
  prepare?.(repository.path);
  triton = new Triton({
    logError: false,
    extensions: [
      withRepository({
        modelRepository: repository.path,
        modelFormats: [modelSettings()],
        exitOnError: false,
        backendConfig: patientPython,
      }),
    ],
  });
  await triton.ready().catch(() => {});
  return triton;
}

const json = (value: object) => JSON.stringify(value);
const reasonOf = async (server: Triton, model: string) =>
  (await serviceOf(server).repositoryIndex(false)).find(({ name }) => name === model)?.reason;

const PYTHON = `
class Triple:
    def __init__(self, factor="3"):
        self._factor = float(factor)

    def predict(self, X, features_names):
        return X * self._factor

class Shout:
    inputs = [{"dtype": "BYTES", "shape": [1]}]
    outputs = [{"dtype": "BYTES", "shape": [1]}]
    max_batch_size = 4

    async def load(self):
        self._mark = "!"

    async def predict(self, words):
        return [[word.decode().upper() + self._mark] for (word,) in words]

class Both:
    inputs = [{"name": "a", "dtype": "FP32", "shape": [1]}, {"name": "b", "dtype": "FP32", "shape": [1]}]
    outputs = [{"name": "sum", "dtype": "FP32", "shape": [1]}, {"name": "difference", "dtype": "FP32", "shape": [1]}]

    def predict(self, a, b):
        return a + b, a - b

class NoPredict:
    pass

class Fails:
    def predict(self, X):
        raise ValueError("three is wrong")
`;

const MLSERVER = `
from typing import List
import numpy as np
from mlserver import MLModel, types
from mlserver.codecs import NumpyCodec, decode_args

class Total(MLModel):
    async def load(self) -> bool:
        self.ready = True
        return self.ready

    async def predict(self, payload: types.InferenceRequest) -> types.InferenceResponse:
        rows = self.decode(payload.inputs[0], default_codec=NumpyCodec)
        total = NumpyCodec.encode_output("total", rows.sum(axis=1))
        return types.InferenceResponse(model_name=self.name, outputs=[total])

class Repeat(MLModel):
    @decode_args
    async def predict(self, x: np.ndarray, words: List[str]) -> np.ndarray:
        return x * len(words)
`;

describe.skipIf(!hasPython)(`a class of Python${withoutPython}`, () => {
  const files = (classes: Readonly<Record<string, string>>, code: string): RepositoryFiles =>
    Object.fromEntries(
      Object.entries(classes).flatMap(([name, implementation]) => [
        [`${name}/served.py`, code],
        [`${name}/model-settings.json`, json({ implementation })],
      ]),
    );

  it("is served as Seldon serves it", async () => {
    const server = await serve(
      files(
        {
          triple: "served.Triple",
          shout: "served.py#Shout",
          both: "served.py:Both",
          fails: "served.Fails",
          none: "served.NoPredict",
          gone: "served.py:Gone",
        },
        PYTHON,
      ),
    );
    const { OUTPUT_1 } = await server.infer("triple", { INPUT_1: [[1, 2]] });
    expect([OUTPUT_1!.shape, OUTPUT_1!.data]).toEqual([[1, 2], Float64Array.of(3, 6)]);
    const words = await Promise.all(
      ["a", "b", "c"].map((word) => server.infer("shout", { INPUT_1: [[word]] })),
    );
    expect(words.map(({ OUTPUT_1: one }) => new TextDecoder().decode(one!.data[0] as Uint8Array))).toEqual([
      "A!",
      "B!",
      "C!",
    ]);
    const both = await server.infer("both", { a: [5], b: [3] });
    expect([both.sum!.data[0], both.difference!.data[0]]).toEqual([8, 2]);
    await expect(server.infer("fails", { INPUT_1: [[1]] })).rejects.toThrow("ValueError: three is wrong");
    expect(await reasonOf(server, "none")).toMatch(
      /expected class 'NoPredict' of .*served\.py to have a method predict, got none/,
    );
    expect(await reasonOf(server, "gone")).toMatch(
      /expected a class 'Gone' in .*served\.py, which has Triple, Shout, Both/,
    );
  });

  it("is served as MLServer serves it", async () => {
    const server = await serve(files({ total: "served.Total", repeat: "served.Repeat" }, MLSERVER));
    const { OUTPUT_1 } = await server.infer("total", {
      INPUT_1: [
        [1, 2],
        [3, 4],
      ],
    });
    expect(OUTPUT_1!.data).toEqual(Float64Array.of(3, 7));
    const repeat = await server.infer("repeat", { x: [[1, 2]], words: ["a", "b"] });
    expect(repeat["output-0"]!.data).toEqual(Float64Array.of(2, 4));
  });

  const hasSklearn = hasPython && succeeds("import sklearn, joblib");

  it.skipIf(!hasSklearn)("of scikit-learn answers predict and predict_proba", async () => {
    const settings = { implementation: "mlserver_sklearn.SKLearnModel" };
    const outputs = ["predict", "predict_proba"].map((name) => ({
      name,
      datatype: name === "predict" ? "INT64" : "FP64",
      shape: [-1, -1].slice(name === "predict" ? 1 : 0),
    }));
    const server = await serve(
      {
        "class/model-settings.json": json(settings),
        "both/model-settings.json": json({ ...settings, outputs }),
      },
      (path) => {
        for (const model of ["class", "both"]) {
          const code =
            "import joblib, sys; from sklearn.linear_model import LogisticRegression as L; " +
            "joblib.dump(L().fit([[0, 0], [0, 1], [9, 9], [9, 8]], [3, 3, 7, 7]), sys.argv[1])";
          execFileSync(pythonProgram, ["-c", code, join(path, model, "model.joblib")]);
        }
      },
    );
    const { predict } = await server.infer("class", {
      INPUT_1: [
        [0, 0.5],
        [9, 9],
      ],
    });
    expect(predict!.data).toEqual(BigInt64Array.of(3n, 7n));
    const both = await server.infer("both", { INPUT_1: [[9, 9]] });
    expect(both.predict!.data).toEqual(BigInt64Array.of(7n));
    expect(both.predict_proba!.shape).toEqual([1, 2]);
  });
});

function succeeds(code: string): boolean {
  try {
    execFileSync(pythonProgram, ["-c", code], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
