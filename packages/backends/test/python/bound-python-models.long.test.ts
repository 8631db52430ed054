import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { python } from "@tritonjs/backends/python";
import { Triton } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { hasPython, withoutPython } from "../../../../test/support/python.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { modelClass } from "./python-server.js";

const x = [{ name: "X", dtype: "FP32", shape: [-1] }] as const;
const y = [{ name: "Y", dtype: "FP32", shape: [-1] }] as const;

const COMPLETES = `@staticmethod
def auto_complete_config(config):
    config.add_input({"name": "X", "data_type": "TYPE_FP32", "dims": [2]})
    config.add_input({"name": "Z", "data_type": "TYPE_FP32", "dims": [1], "optional": True})
    config.add_output({"name": "Y", "data_type": "TYPE_FP32", "dims": [2]})
    config.set_max_batch_size(8)
    config.set_dynamic_batching()
    return config
`;

const DOUBLES = `def execute(self, requests):
    return [y(x_of(request) * 2) for request in requests]`;

describe.skipIf(!hasPython)(`a Python model that is bound${withoutPython}`, () => {
  let files: RepositoryOnDisk;
  let triton: Triton;
  beforeEach(async () => {
    files = await RepositoryOnDisk.create({});
    triton = new Triton();
  });
  afterEach(async () => {
    await triton.close();
    await files[Symbol.asyncDispose]();
  });

  /** Writes a model. @returns its path */
  const model = async (methods: string, path = "json/model.py") => {
    const file = join(files.path, path);
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, modelClass(methods));
    return file;
  };

  it("is described by its auto_complete_config", async () => {
    const file = await model(COMPLETES + DOUBLES);
    const handle = triton.bind({ modelName: "m", inferFunc: python({ model: pathToFileURL(file) }) });
    await triton.ready();
    expect(handle.metadata()).toMatchObject({
      platform: "python",
      inputs: [
        { name: "X", datatype: "FP32", shape: [-1, 2] },
        { name: "Z", datatype: "FP32", shape: [-1, 1] },
      ],
      outputs: [{ name: "Y", datatype: "FP32", shape: [-1, 2] }],
    });
    const { config } = serviceOf(triton).model("m", "");
    expect(config).toMatchObject({ backend: "python", maxBatchSize: 8, input: [{}, { optional: true }] });
    const { Y } = await triton.infer<string>("m", { X: [[1, 2]] });
    expect([...(Y as { data: Float32Array }).data]).toEqual([2, 4]);
  });

  it("has the tensors given to bind when it has no auto_complete_config", async () => {
    const file = await model(DOUBLES);
    triton.bind({ modelName: "m", inferFunc: python({ model: file }), inputs: x, outputs: y });
    const { Y } = await triton.infer<string>("m", { X: [1, 2, 3] });
    expect([...(Y as { data: Float32Array }).data]).toEqual([2, 4, 6]);
  });

  it("may complete what bind was given, and must not contradict it", async () => {
    const file = await model(COMPLETES + DOUBLES);
    const inferFunc = python({ model: file });
    const outputs = [{ name: "Y", dtype: "FP32", shape: [2] }] as const;
    const more = [{ name: "more", dtype: "BOOL", shape: [1] }] as const;
    triton.bind({ modelName: "m", inferFunc, outputs, inputs: more, config: { maxBatchSize: 4 } });
    await triton.ready();
    const { config } = serviceOf(triton).model("m", "");
    expect(config.maxBatchSize).toBe(4);
    expect(config.input.map(({ name }) => name)).toEqual(["more", "X", "Z"]);
    const wrong = [{ name: "X", dtype: "INT8", shape: [2] }] as const;
    const config16 = { maxBatchSize: 16, decoupled: true };
    const error = thrownBy(() => triton.bind({ modelName: "n", inferFunc, inputs: wrong, config: config16 }));
    expect(error).toContain("input 'X': expected dtype FP32, as in the model file, got INT8");
    expect(error).toContain("config.maxBatchSize is 16, but the model takes at most 8 rows");
  });

  it("may be decoupled", async () => {
    const file = await model(`@staticmethod
def auto_complete_config(config):
    config.set_model_transaction_policy({"decoupled": True})
    return config
def execute(self, requests):
    for request in requests:
        sender = request.get_response_sender()
        for i in range(3):
            sender.send(y([i]))
        sender.send(flags=FINAL)`);
    const inferFunc = python({ model: file });
    const handle = triton.bind({ modelName: "m", inferFunc, inputs: x, outputs: y });
    const seen: number[] = [];
    for await (const { Y } of handle.stream({ X: Float32Array.of(1) })) seen.push(...Y!.data);
    expect(seen).toEqual([0, 1, 2]);
  });

  it("gets parameters and environment variables, and imports modules beside it", async () => {
    await model("pass", "my.models/beside.py");
    const file = await model(
      `def initialize(self, args):
    from . import beside
    config = json.loads(args["model_config"])
    self.value = float(config["parameters"]["value"]["string_value"]) + float(os.environ["ADDED"])
    assert args["model_repository"] == pb_utils.get_model_dir()
def execute(self, requests):
    return [y(self.value) for request in requests]`,
      "my.models/model.py",
    );
    const inferFunc = python({ model: file, parameters: { value: "3" }, env: { ADDED: "4" } });
    triton.bind({ modelName: "m", inferFunc, inputs: x, outputs: y });
    const { Y } = await triton.infer<string>("m", { X: [1] });
    expect([...(Y as { data: Float32Array }).data]).toEqual([7]);
  });

  it("is rejected with the reason", async () => {
    const bind = (options: Parameters<typeof python>[0]) =>
      thrownBy(() => triton.bind({ modelName: "m", inferFunc: python(options), inputs: x, outputs: y }));
    expect(bind({ model: "/not/there/model.py" })).toBe(
      "NOT_FOUND cannot find the Python model '/not/there/model.py'",
    );
    const raises = await model(`@staticmethod
def auto_complete_config(config):
    raise ValueError("no tensors")`);
    expect(bind({ model: raises })).toMatch(
      /^INTERNAL ValueError: no tensors\n\nAt:\n .*auto_complete_config/,
    );
    expect(bind({ model: raises, python: "/not/there/python3" })).toMatch(
      /cannot start model 'model' with '\/not\/there\/python3': it could not be started/,
    );
    expect(bind({ model: "model.txt", loadTimeoutSeconds: 0 })).toMatch(
      /^INVALID_ARG python\(\): loadTimeoutSeconds: expected a number above 0, got 0; model: expected a '\.py' file, got '.*model\.txt'$/,
    );
    const fails = await model(`def initialize(self, args):\n    raise ValueError("no weights")\n${DOUBLES}`);
    triton.bind({ modelName: "m", inferFunc: python({ model: fails }), inputs: x, outputs: y });
    await expect(triton.ready()).rejects.toThrow(/model 'm' version 1: ValueError: no weights/);
    expect(await outcomeOf(triton.infer<string>("m", { X: [1] }))).toMatch(
      /^NOT_FOUND .* 'm' has no available versions$/,
    );
  });
});
