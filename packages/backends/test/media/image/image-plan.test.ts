import { describe, expect, it } from "vitest";
import { planImage } from "../../../src/media/image-options.js";
import { messageThrownBy } from "../support/message-thrown-by.js";

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
