import sharp from "sharp";
import { describe, expect, it } from "vitest";
import { decodeImage } from "../../../src/media/image-backend.js";
import type { ImageOptions } from "../../../src/media/image-options.js";
import { planImage } from "../../../src/media/image-options.js";
import { difference, expectedPixels, fixture } from "../support/fixtures.js";

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
