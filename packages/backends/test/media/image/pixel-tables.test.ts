import { float16ToFloat32 } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { pixelArray, pixelWriter } from "../../../src/media/image-backend.js";
import type { ImageOptions } from "../../../src/media/image-options.js";
import { planImage } from "../../../src/media/image-options.js";
import { difference, expectedPixels, fixture } from "../support/fixtures.js";

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
