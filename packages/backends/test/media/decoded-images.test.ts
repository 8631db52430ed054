import { image } from "@tritonjs/backends/media";
import { Triton } from "@tritonjs/core";
import ndarray from "ndarray";
import sharp from "sharp";
import { describe, expect, it } from "vitest";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { fixture } from "./support/fixtures.js";

/** The photograph as a client decodes it. */
async function decoded() {
  const { data, info } = await sharp(fixture("photo.jpg"))
    .autoOrient()
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  return { values: new Uint8Array(data), shape: [info.height, info.width, 3] };
}

const SILENT = { error() {}, warn() {}, info() {}, debug() {} };

const CONFIG = `backend: "dali"
max_batch_size: 4
input [ { name: "DALI_INPUT_0" data_type: TYPE_FP32 dims: [ -1, -1, 3 ] } ]
output [ { name: "DALI_OUTPUT_0" data_type: TYPE_FP32 dims: [ 3, 16, 24 ] } ]`;

/** Serves a model for DALI, for which `steps` stand. */
async function serving(steps: string | undefined) {
  const models = await RepositoryOnDisk.create({
    "m/config.pbtxt": CONFIG,
    "m/1/model.dali": "pipeline",
    ...(steps === undefined ? {} : { "m/1/steps.json": steps }),
  });
  const triton = new Triton({
    modelRepository: models.path,
    substitutes: [{ backend: "dali", use: { backend: "image", file: "steps.json" } }],
    exitOnError: false,
    logger: SILENT,
  });
  await triton.ready();
  return {
    triton,
    reason: async () => (await triton.service.repositoryIndex(false))[0]!.reason,
    async [Symbol.asyncDispose]() {
      await triton.close();
      await models[Symbol.asyncDispose]();
    },
  };
}

describe("an image that the client has decoded", () => {
  it.each(["UINT8", "FP32"] as const)(
    "of %s becomes the same tensor as a file without losses",
    async (inputDtype) => {
      const { values, shape } = await decoded();
      const [height, width] = shape as [number, number];
      const file = await sharp(values, { raw: { width, height, channels: 3 } })
        .png()
        .toBuffer();
      await using triton = new Triton();
      const options = { width: 20, height: 16, mean: 0.5, originalSize: true };
      const ofFile = triton.bind({ modelName: "file", inferFunc: image(options) });
      const ofPixels = triton.bind({ modelName: "pixels", inferFunc: image({ ...options, inputDtype }) });
      const wanted = await ofFile.inferSample({ image: [file] });
      const data = inputDtype === "FP32" ? Float32Array.from(values) : values;
      const got = await ofPixels.infer({ image: ndarray(data, [1, ...shape]) });
      expect([...got.pixels!.data]).toEqual([...wanted.pixels!.data]);
      expect([...got.original_size!.data]).toEqual([height, width]);
    },
  );

  it("stands for DALI with the steps of a file, and bad pixels fail their own request", async () => {
    await using server = await serving('{ "fit": "fill", "mean": [0.1, 0.2, 0.3] }');
    const call = (values: number[], shape = [2, 2, 3]) =>
      server.triton.infer("m", {
        DALI_INPUT_0: ndarray(Float32Array.from(values), [1, ...shape]),
      });
    const grey = Array(12).fill(51);
    const { DALI_OUTPUT_0 } = await call(grey);
    expect(DALI_OUTPUT_0!.shape).toEqual([1, 3, 16, 24]);
    const colours = [0, 1, 2].map((channel) => Number(DALI_OUTPUT_0!.data[channel * 16 * 24]));
    for (const [channel, mean] of [0.1, 0.2, 0.3].entries())
      expect(colours[channel]).toBeCloseTo(0.2 - mean, 6);
    await expect(call([...grey.slice(1), 300])).rejects.toThrow(
      "input 'DALI_INPUT_0': expected values from 0 to 255, got 300",
    );
    await expect(call([...grey.slice(1), Number.NaN])).rejects.toThrow(
      "expected values from 0 to 255, got NaN",
    );
    await expect(call([], [0, 2, 3])).rejects.toThrow("expected an image with pixels, got 0x2");
    expect((await call(grey)).DALI_OUTPUT_0!.shape).toEqual([1, 3, 16, 24]);
  });

  it.each([
    [undefined, "steps.json' for model instance 'm'"],
    ["steps", "model 'm': expected a JSON object of options in"],
    ["[]", "got a list"],
    ['{ "widht": 3 }', "model 'm': steps.json has an unknown option 'widht': did you mean 'width'?"],
    ['{ "std": 0 }', "std: expected numbers other than 0"],
  ])("with the steps %s is not loaded: %s", async (steps, reason) => {
    await using server = await serving(steps);
    expect(await server.reason()).toContain(reason);
  });
});
