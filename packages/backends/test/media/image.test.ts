import { readFileSync } from "node:fs";
import { join } from "node:path";
import { image } from "@tritonjs/backends/media";
import { Triton } from "@tritonjs/core";
import { float16ToFloat32 } from "@tritonjs/protocol";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import ndarray from "ndarray";
import sharp from "sharp";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { decodeImage, pixelArray, pixelWriter } from "../../src/media/image-backend.js";
import { type ImageOptions, planImage } from "../../src/media/image-options.js";
import { difference, expectedPixels, fixture } from "./support/fixtures.js";
import { messageThrownBy } from "./support/message-thrown-by.js";

describe("the image backend", () => {
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
      values[channel * width * height + (i - channel) / 3] =
        (data[i]! / 255 - mean[channel]!) / std[channel]!;
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
      const outcomes = await Promise.all(
        files.map((file) => outcomeOf(model.inferSample({ image: [file] }))),
      );
      for (const [i, outcome] of outcomes.entries()) {
        if (i % 5 === 3)
          expect(outcome).toMatch(/^INVALID_ARG input 'image': cannot decode the jpeg image: /);
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
});

const decode = (file: Uint8Array, options: Partial<ImageOptions> = {}, row?: number) =>
  decodeImage(
    sharp,
    planImage({ width: 40, height: 30, fit: "fill", dtype: "UINT8", ...options }),
    file,
    row,
  );

async function messageOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "no error",
    (error) => `${error.code} ${error.message}`,
  );
}

describe("an image of the tensor's size", () => {
  // 8-bit rounding of both libraries: 2 of 255 at most, and a quarter on average.
  it.each([
    ["photo.png fill 40x30", {}],
    ["photo.png fill 40x30 lanczos3", { kernel: "lanczos3" }],
    ["photo.png crop 32 of 48", { width: 32, height: 32, fit: "cover", shorterSide: 48 }],
    ["photo.jpg fill 96x72", { width: 96, height: 72 }],
    ["photo.jpg fill 40x30", {}],
    ["turned.jpg fill 30x40", { width: 30, height: 40 }],
    ["grey.jpg fill 40x30", {}],
    ["grey16.png fill 40x30", {}],
  ] as const)("%s is Pillow's to 2 of 255", async (name, options) => {
    const { pixels, channels } = await decode(fixture(name.split(" ")[0]!), options);
    expect(channels).toBe(3);
    const { largest, mean } = difference(pixels, expectedPixels(name));
    expect(largest).toBeLessThanOrEqual(2);
    expect(mean).toBeLessThan(0.3);
  });

  it("has the nearest pixels exactly", async () => {
    const { pixels } = await decode(fixture("photo.png"), { kernel: "nearest" });
    expect(pixels).toEqual(Buffer.from(expectedPixels("photo.png fill 40x30 nearest")));
  });

  it("shows the background through transparent pixels", async () => {
    const { pixels } = await decode(fixture("alpha.png"), { background: [255, 255, 255] });
    const { largest, mean } = difference(pixels, expectedPixels("alpha.png white 40x30"));
    expect(largest).toBeLessThanOrEqual(3);
    expect(mean).toBeLessThan(1);
  });

  it("has the background beside an image that is contained", async () => {
    const { pixels } = await decode(fixture("photo.png"), {
      width: 48,
      height: 48,
      fit: "contain",
      background: [114, 114, 114],
    });
    expect([...pixels.subarray(0, 48 * 3 * 6)].every((value) => value === 114)).toBe(true);
    expect([...pixels.subarray(48 * 3 * 42)].every((value) => value === 114)).toBe(true);
    expect([...pixels.subarray(48 * 3 * 7, 48 * 3 * 41)].some((value) => value !== 114)).toBe(true);
  });

  it.each([1, 4, 8, 16, 24, 32, "8-rle", "32-alpha", "24-top-down", "16-masks", "8-os2"])(
    "has Pillow's pixels exactly for a BMP: %s",
    async (kind) => {
      const name = `bmp-${kind}.bmp`;
      const { pixels } = await decode(fixture(name), { width: 19, height: 7, background: [255, 255, 255] });
      const { largest } = difference(pixels, expectedPixels(name));
      // Alpha is blended by two libraries.
      expect(largest).toBeLessThanOrEqual(kind === "32-alpha" ? 1 : 0);
    },
  );

  it.each(["still.gif", "still.webp"])("reads %s", async (name) => {
    expect((await decode(fixture(name))).pixels).toHaveLength(40 * 30 * 3);
  });

  it("reports the size of the upright image", async () => {
    expect((await decode(fixture("turned.jpg"), { originalSize: true })).originalSize).toEqual([96, 72]);
  });

  it("is the first frame of an animation if the options say so", async () => {
    expect((await decode(fixture("animated.gif"), { animated: "first" })).pixels).toHaveLength(40 * 30 * 3);
  });
});

describe("a bad file is refused with the name of the input", () => {
  const jpeg = fixture("photo.jpg");

  it.each([
    [
      "that is empty",
      new Uint8Array(),
      "expected an image (jpeg, png, webp, gif, tiff, avif, bmp), got 0 bytes of something else",
    ],
    [
      "of text",
      Buffer.from("not an image at all"),
      "expected an image (jpeg, png, webp, gif, tiff, avif, bmp), got 19 bytes of something else",
    ],
    [
      "of SVG",
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
      "expected an image (jpeg, png, webp, gif, tiff, avif, bmp), got 41 bytes of something else",
    ],
    [
      "with several frames",
      fixture("animated.gif"),
      "expected a single image, got an animation or pages: 3 images",
    ],
  ])("%s", async (_, file, text) => {
    expect(await messageOf(decode(file))).toBe(`INVALID_ARG input 'image': ${text}`);
  });

  it.each([
    ["compression", 30, 9, "compression 9 of 24 bits a pixel is not supported"],
    ["depth", 28, 23, "expected 1, 4, 8, 16, 24 or 32 bits a pixel, got 23"],
    ["width", 18, 0, "expected at least one pixel, got 0x7"],
    ["header", 14, 9, "unknown header of 9 bytes"],
  ])("that is a BMP with an impossible %s", async (_, at, value, text) => {
    const file = Buffer.from(fixture("bmp-24.bmp"));
    file[at] = value;
    expect(await messageOf(decode(file))).toBe(
      `INVALID_ARG input 'image': cannot decode the bmp image: ${text}`,
    );
  });

  it("that is a BMP of a huge size, without memory for it", async () => {
    const bomb = Buffer.from(fixture("bmp-24.bmp"));
    bomb.writeInt32LE(60_000, 18);
    bomb.writeInt32LE(-60_000, 22);
    expect(await messageOf(decode(bomb))).toBe(
      "INVALID_ARG input 'image': expected an image of at most 50000000 pixels, got a larger one",
    );
    bomb.writeInt32LE(70_000, 18);
    bomb.writeInt32LE(1, 22);
    expect(await messageOf(decode(Buffer.concat([bomb, Buffer.alloc(210_000)])))).toBe(
      "INVALID_ARG input 'image': expected an image of at most 65535 pixels a side, got 70000x1",
    );
  });

  it.each(["photo.jpg", "photo.png", "still.webp", "still.gif", "bmp-24.bmp", "bmp-8-rle.bmp"])(
    "that is a cut %s",
    async (name) => {
      const file = fixture(name);
      const text = await messageOf(decode(file.subarray(0, file.length / 2), {}, 3));
      expect(text).toMatch(
        /^INVALID_ARG input 'image', row 3: cannot decode the (jpeg|png|webp|gif|bmp) image: /,
      );
    },
  );

  it("with more pixels than the limit", async () => {
    expect(await messageOf(decode(jpeg, { maxPixels: 96 * 72 - 1 }))).toBe(
      "INVALID_ARG input 'image': expected an image of at most 6911 pixels, got a larger one",
    );
    expect((await decode(jpeg, { maxPixels: 96 * 72 })).pixels).toHaveLength(3600);
  });

  it("that claims a huge size, without memory for it", async () => {
    const bomb = Buffer.from(fixture("photo.png"));
    bomb.writeUInt32BE(60_000, 16);
    bomb.writeUInt32BE(60_000, 20);
    bomb.writeUInt32BE(crcOf(bomb.subarray(12, 29)), 29);
    expect(await messageOf(decode(bomb))).toBe(
      "INVALID_ARG input 'image': expected an image of at most 50000000 pixels, got a larger one",
    );
  });

  it("that is a long strip", async () => {
    const strip = await sharp({ create: { width: 70_000, height: 1, channels: 3, background: "red" } })
      .png()
      .toBuffer();
    expect(await messageOf(decode(strip))).toBe(
      "INVALID_ARG input 'image': expected an image of at most 65535 pixels a side, got 70000x1",
    );
  });

  it("with more bytes than the limit, and in another format than those that are accepted", async () => {
    expect(await messageOf(decode(jpeg, { maxBytes: 100 }))).toBe(
      `INVALID_ARG input 'image': expected an image of at most 100 bytes, got ${jpeg.length}`,
    );
    expect(await messageOf(decode(jpeg, { formats: ["png"] }))).toBe(
      "INVALID_ARG input 'image': expected an image (png), got jpeg",
    );
  });
});

/** The checksum of a PNG chunk. */
function crcOf(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

const refused = (options: object) =>
  messageThrownBy(() => planImage({ width: 8, height: 8, ...options } as never));

describe("an option of image that is refused", () => {
  it.each([
    [{ width: 0 }, "width: expected an integer from 1 to 16384, got 0"],
    [{ height: 2.5 }, "height: expected an integer from 1 to 16384, got 2.5"],
    [{ fit: "crop" }, "fit: expected one of cover, contain, fill, got 'crop'"],
    [{ shorterSide: 4 }, "shorterSide: expected an integer from 8 to 16384, got 4"],
    [{ shorterSide: 9, fit: "fill" }, "shorterSide: expected no value unless fit is 'cover', got 9"],
    [{ dtype: "UINT8", mean: 1 }, "mean: expected no value with dtype UINT8, which keeps 0 to 255, got 1"],
    [{ mean: [1, 2] }, "mean: expected a number, or 3 numbers, one for each channel, got [1, 2]"],
    [
      { colour: "grey", mean: [1, 2, 3] },
      "mean: expected a number, or 1 numbers, one for each channel, got [1, 2, 3]",
    ],
    [{ std: 0 }, "std: expected numbers other than 0, got 0"],
    [{ formats: ["svg"] }, "formats: expected one of jpeg, png, webp, gif, tiff, avif, bmp, got 'svg'"],
    [{ background: [0, 0, 256] }, "background: expected an integer from 0 to 255, got 256"],
    [{ maxPixels: 0 }, "maxPixels: expected an integer from 1 to 2147483647, got 0"],
    [{ concurrency: 0 }, "concurrency: expected an integer from 1 to 1024, got 0"],
  ])("%j", (options, text) => {
    expect(refused(options)).toBe(`INVALID_ARG ${text}`);
  });
});

async function write(pixels: Uint8Array, channels: number, options: ImageOptions) {
  const plan = planImage(options);
  const target = pixelArray(plan.dtype, plan.width * plan.height * plan.channels);
  await pixelWriter(plan)(pixels, channels, target, 0);
  return target;
}

const two = Uint8Array.of(0, 51, 255, 102, 153, 204);

const size = { width: 2, height: 1 };

describe("pixels in a tensor", () => {
  it("lie channel by channel, scaled to 1", async () => {
    expect([...(await write(two, 3, size))]).toEqual([0, 0.4, 0.2, 0.6, 1, 0.8].map(Math.fround));
  });

  it("lie pixel by pixel with NHWC, and blue first with BGR", async () => {
    const options = { ...size, layout: "NHWC", dtype: "UINT8", colour: "BGR" } as const;
    expect([...(await write(two, 3, options))]).toEqual([255, 51, 0, 204, 153, 102]);
  });

  it("have the mean and the deviation of their channel, each value rounded once", async () => {
    const mean = [0.485, 0.456, 0.406];
    const std = [0.229, 0.224, 0.225];
    const got = await write(two, 3, { ...size, mean, std });
    const wanted = [0, 1, 2].flatMap((c) =>
      [two[c]!, two[3 + c]!].map((v) => (v / 255 - mean[c]!) / std[c]!),
    );
    expect([...got]).toEqual(wanted.map(Math.fround));
  });

  it("are half floats with FP16", async () => {
    const halves = (await write(two, 3, { ...size, dtype: "FP16" })) as Uint16Array;
    expect(difference(float16ToFloat32(halves), [0, 0.4, 0.2, 0.6, 1, 0.8]).largest).toBeLessThan(5e-4);
  });

  it("become Pillow's grey to 1 of 255", async () => {
    const sharp = (await import("sharp")).default;
    const { data } = await sharp(fixture("photo.png")).raw().toBuffer({ resolveWithObject: true });
    const got = await write(data, 3, { width: 96, height: 72, colour: "grey", dtype: "UINT8" });
    expect(difference(got, expectedPixels("photo.png grey 96x72")).largest).toBeLessThanOrEqual(1);
  });

  it("of a grey image fill all channels", async () => {
    expect([...(await write(Uint8Array.of(7, 9), 1, { ...size, dtype: "UINT8" }))]).toEqual([
      7, 9, 7, 9, 7, 9,
    ]);
  });

  it("of a large image are written in slices, with turns of the event loop between them", async () => {
    const side = 512;
    const pixels = Uint8Array.from({ length: side * side * 3 }, (_, i) => (i * 31) % 256);
    let turns = 0;
    const count = () => {
      turns++;
      timer = setImmediate(count);
    };
    let timer = setImmediate(count);
    const got = await write(pixels, 3, { width: side, height: side, dtype: "UINT8" });
    clearImmediate(timer);
    expect(turns).toBeGreaterThan(1);
    const wanted = Uint8Array.from(
      got,
      (_, i) => pixels[(i % (side * side)) * 3 + Math.floor(i / (side * side))]!,
    );
    expect(Buffer.compare(got as Uint8Array, wanted)).toBe(0);
  });
});

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
    logger: SILENT,
    extensions: [
      repository({
        modelRepository: models.path,
        substitutes: [{ backend: "dali", use: { backend: "image", file: "steps.json" } }],
        exitOnError: false,
      }),
    ],
  });
  await triton.ready();
  return {
    triton,
    reason: async () => (await serviceOf(triton).repositoryIndex(false))[0]!.reason,
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
