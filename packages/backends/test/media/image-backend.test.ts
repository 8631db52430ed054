import { readFileSync } from "node:fs";
import { join } from "node:path";
import { image } from "@tritonjs/backends/media";
import { Triton } from "@tritonjs/core";
import sharp from "sharp";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { repositoryRoot } from "../../../../test/support/repository.js";

const fixture = (name: string) =>
  readFileSync(join(repositoryRoot, "packages/backends/test/media/fixtures", name));
const jpeg = fixture("photo.jpg");
const png = fixture("photo.png");

const mean = [0.485, 0.456, 0.406];
const std = [0.229, 0.224, 0.225];

/** What bare sharp and a normalization by hand make of an image. */
async function byHand(file: Uint8Array, width: number, height: number): Promise<Float32Array> {
  const { data } = await sharp(file)
    .resize(width, height, { fit: "cover", kernel: "linear" })
    .raw()
    .toBuffer({ resolveWithObject: true });
  const values = new Float32Array(data.length);
  for (let i = 0; i < data.length; i++) {
    const channel = i % 3;
    values[channel * width * height + (i - channel) / 3] = (data[i]! / 255 - mean[channel]!) / std[channel]!;
  }
  return values;
}

let triton: Triton;
beforeEach(() => {
  triton = new Triton();
});
afterEach(() => triton.close());

describe("a bound image backend", () => {
  it("describes its tensors, and prepares images as bare sharp and arithmetic do", async () => {
    const model = triton.bind({
      modelName: "pixels",
      inferFunc: image({ width: 32, height: 24, mean, std }),
    });
    expect(model.metadata()).toMatchObject({
      inputs: [{ name: "image", datatype: "BYTES", shape: [-1, 1] }],
      outputs: [{ name: "pixels", datatype: "FP32", shape: [-1, 3, 24, 32] }],
    });
    const { pixels } = await model.inferBatch({ image: [[jpeg], [png]] });
    expect(pixels!.shape).toEqual([2, 3, 24, 32]);
    const size = 3 * 24 * 32;
    expect(pixels!.data.slice(0, size)).toEqual(await byHand(jpeg, 32, 24));
    expect(pixels!.data.slice(size)).toEqual(await byHand(png, 32, 24));
  });

  it("prepares many requests at a time, and a bad file fails only its own", async () => {
    const model = triton.bind({
      modelName: "pixels",
      inferFunc: image({ width: 8, height: 8, dtype: "UINT8", concurrency: 2 }),
      config: { maxBatchSize: 16 },
    });
    const files = Array.from({ length: 40 }, (_, i) =>
      i % 5 === 3 ? jpeg.subarray(0, 900 + i) : i % 2 ? jpeg : png,
    );
    const outcomes = await Promise.all(files.map((file) => outcomeOf(model.inferSample({ image: [file] }))));
    for (const [i, outcome] of outcomes.entries()) {
      if (i % 5 === 3) expect(outcome).toMatch(/^INVALID_ARG input 'image': cannot decode the jpeg image: /);
      else expect(outcome).toBe("done");
    }
    expect(model.statistics()).toMatchObject({
      inferenceStats: { success: { count: 32 }, fail: { count: 8 } },
    });
  });

  it("names the row of a bad file", async () => {
    const model = triton.bind({ modelName: "pixels", inferFunc: image({ width: 8, height: 8 }) });
    expect(await outcomeOf(model.inferBatch({ image: [[jpeg], ["text of some length"]] }))).toBe(
      "INVALID_ARG input 'image', row 1: expected an image (jpeg, png, webp, gif, tiff, avif, bmp), got 19 bytes of something else",
    );
  });

  it("ends a cancelled request at once, and answers the others", async () => {
    const model = triton.bind({
      modelName: "pixels",
      inferFunc: image({ width: 8, height: 8, concurrency: 1 }),
      config: { maxBatchSize: 64 },
    });
    const cancel = new AbortController();
    const cancelled = model.inferBatch(
      { image: Array.from({ length: 64 }, () => [png]) },
      { signal: cancel.signal },
    );
    const other = model.inferSample({ image: [jpeg] });
    cancel.abort();
    expect(await outcomeOf(cancelled)).toMatch(/^CANCELLED /);
    expect(await outcomeOf(other)).toBe("done");
  });

  it("has the rows in the dims if the model does not batch", async () => {
    const model = triton.bind({
      modelName: "pixels",
      inferFunc: image({ width: 4, height: 4, colour: "grey", layout: "NHWC", originalSize: true }),
      config: { batching: false },
    });
    const { pixels, original_size } = await model.inferSample({ image: [[fixture("turned.jpg")], [jpeg]] });
    expect(pixels!.shape).toEqual([2, 4, 4, 1]);
    expect([...(original_size!.data as Int32Array)]).toEqual([96, 72, 72, 96]);
  });

  it("is a step of an ensemble, whose errors name the ensemble", async () => {
    triton.bind({ modelName: "pixels", inferFunc: image({ width: 6, height: 6 }) });
    const ensemble = triton.bindEnsemble({
      modelName: "bright",
      inputs: [{ name: "image", dtype: "BYTES", shape: [1] }],
      outputs: [{ name: "pixels", dtype: "FP32", shape: [3, 6, 6] }],
      steps: [{ modelName: "pixels", inputMap: { image: "image" }, outputMap: { pixels: "pixels" } }],
      config: { maxBatchSize: 4 },
    });
    const { pixels } = await ensemble.inferSample({ image: [jpeg] });
    expect(pixels.shape).toEqual([3, 6, 6]);
    expect(await outcomeOf(ensemble.inferSample({ image: ["nothing to see here"] }))).toMatch(
      /^INVALID_ARG in ensemble 'bright', input 'image': expected an image/,
    );
  });

  it("refuses invalid options before the model exists", () => {
    expect(thrownBy(() => image({ width: 0, height: 8 }))).toBe(
      "INVALID_ARG width: expected an integer from 1 to 16384, got 0",
    );
  });
});
