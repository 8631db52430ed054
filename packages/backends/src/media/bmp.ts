type BmpHeader = ReturnType<typeof readBmpHeader>;

const DEPTHS: readonly number[] = [1, 4, 8, 16, 24, 32];
const RLE8 = 1;
const BITFIELDS = 3;
const ALPHA_BITFIELDS = 6;

/**
 * Reads the headers of a BMP: 1 to 32 bits a pixel, uncompressed, with bit masks, or in 8 bits with run lengths.
 *
 * @throws Error for a header that is cut, contradicts itself, or names another compression
 */
export function readBmpHeader(file: Uint8Array) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const need = (bytes: number) => {
    if (file.byteLength < bytes)
      throw new Error(`the file ends in its header, after ${file.byteLength} bytes`);
  };
  need(26);
  const size = view.getUint32(14, true);
  // Version 1 (OS/2) has 16-bit sizes and palette entries of three bytes.
  const isOld = size === 12;
  if (!isOld && (size < 40 || size > 124)) throw new Error(`unknown header of ${size} bytes`);
  need(14 + size);
  const width = isOld ? view.getUint16(18, true) : view.getInt32(18, true);
  const signedHeight = isOld ? view.getInt16(20, true) : view.getInt32(22, true);
  const height = Math.abs(signedHeight);
  const bits = view.getUint16(isOld ? 24 : 28, true);
  const compression = isOld ? 0 : view.getUint32(30, true);
  if (width < 1 || height < 1) throw new Error(`expected at least one pixel, got ${width}x${height}`);
  if (!DEPTHS.includes(bits)) throw new Error(`expected 1, 4, 8, 16, 24 or 32 bits a pixel, got ${bits}`);
  const isMasked = compression === BITFIELDS || compression === ALPHA_BITFIELDS;
  const isRunLength = compression === RLE8 && bits === 8 && signedHeight > 0;
  if (compression !== 0 && !isRunLength && !(isMasked && bits >= 16 && bits !== 24)) {
    throw new Error(`compression ${compression} of ${bits} bits a pixel is not supported`);
  }
  // The masks follow a header of version 3, and are a part of later ones.
  const maskBytes = isMasked && size === 40 ? (compression === BITFIELDS ? 12 : 16) : 0;
  need(14 + size + maskBytes);
  const mask = (i: number) =>
    i < 3 || maskBytes === 16 || size >= 56 ? view.getUint32(54 + 4 * i, true) : 0;
  const paletteAt = 14 + size + maskBytes;
  const used = isOld ? 0 : view.getUint32(46, true);
  const colours = bits > 8 ? 0 : Math.min(used || 2 ** bits, 2 ** bits);
  const entry = isOld ? 3 : 4;
  need(paletteAt + colours * entry);
  const palette = new Uint8Array(3 * 2 ** Math.min(bits, 8));
  for (let i = 0; i < colours; i++) {
    for (let channel = 0; channel < 3; channel++)
      palette[3 * i + channel] = file[paletteAt + i * entry + 2 - channel]!;
  }
  const masks = isMasked
    ? ([mask(0), mask(1), mask(2), mask(3)] as const)
    : bits === 16
      ? ([0x7c00, 0x3e0, 0x1f, 0] as const)
      : ([0xff0000, 0xff00, 0xff, 0] as const);
  return {
    ...{ width, height, isTopDown: signedHeight < 0, bits, isRunLength },
    /** Red, green and blue of each colour. */
    palette,
    /** Bit masks of red, green, blue and alpha; undefined for a palette. */
    masks: bits <= 8 ? undefined : masks,
    pixelsAt: view.getUint32(10, true),
  };
}

/** Pixels between two turns of the event loop: about a third of a millisecond. */
const PIXELS_A_SLICE = 2 ** 13;

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/**
 * Decodes the pixels of a BMP, row by row from the top, with a turn of the event loop after each slice.
 *
 * @returns channels of the pixels: RGB, or RGBA for a BMP with alpha
 * @throws Error if the file ends before its last pixel
 */
export async function readBmp(
  file: Uint8Array,
  header: BmpHeader,
): Promise<{ readonly channels: 3 | 4; readonly pixels: Uint8Array }> {
  const { width, height, isTopDown, bits, isRunLength, masks, palette, pixelsAt } = header;
  // Rows begin at multiples of four bytes.
  const stride = isRunLength ? width : Math.ceil((width * bits) / 32) * 4;
  const rows = isRunLength
    ? await unpackRuns(file.subarray(pixelsAt), width, height)
    : file.subarray(pixelsAt);
  if (rows.byteLength < stride * (height - 1) + Math.ceil((width * bits) / 8)) {
    throw new Error(`expected ${stride * height} bytes of pixels, got ${rows.byteLength}`);
  }
  const channels = masks !== undefined && masks[3] !== 0 ? 4 : 3;
  const pixels = new Uint8Array(width * height * channels);
  const tables = masks?.slice(0, channels).map(channelReader);
  const bytes = bits / 8;
  const lastColour = 2 ** bits - 1;
  const rowsASlice = Math.ceil(PIXELS_A_SLICE / width);
  for (let y = 0, at = 0; y < height; y++) {
    if (y > 0 && y % rowsASlice === 0) await nextTurn();
    const row = (isTopDown ? y : height - 1 - y) * stride;
    for (let x = 0; x < width; x++, at += channels) {
      if (tables === undefined) {
        const bit = x * bits;
        const colour = (rows[row + (bit >> 3)]! >> (8 - bits - (bit & 7))) & lastColour;
        for (let i = 0; i < 3; i++) pixels[at + i] = palette[3 * colour + i]!;
        continue;
      }
      let value = 0;
      for (let i = bytes - 1; i >= 0; i--) value = (value << 8) | rows[row + x * bytes + i]!;
      for (let i = 0; i < channels; i++) pixels[at + i] = tables[i]!(value);
    }
  }
  return { channels, pixels };
}

/** Reads the bits of a mask, scaled to 0 to 255. */
function channelReader(mask: number): (value: number) => number {
  if (mask === 0) return () => 0;
  const shift = 31 - Math.clz32(mask & -mask);
  const most = mask >>> shift;
  return (value) => Math.floor((((value & mask) >>> shift) * 255) / most);
}

/** Unpacks rows of 8-bit run lengths, from the bottom up. Pixels that are skipped have colour 0. */
async function unpackRuns(data: Uint8Array, width: number, height: number): Promise<Uint8Array> {
  const rows = new Uint8Array(width * height);
  let x = 0;
  let y = 0;
  for (let at = 0, runs = 1; y < height; runs++) {
    if (runs % PIXELS_A_SLICE === 0) await nextTurn();
    if (at + 1 >= data.byteLength) throw new Error("the file ends before its last pixel");
    const count = data[at++]!;
    const value = data[at++]!;
    if (count === 0 && value === 1) break;
    if (count === 0 && value === 0) [x, y] = [0, y + 1];
    else if (count === 0 && value === 2) [x, y] = [x + (data[at++] ?? 0), y + (data[at++] ?? 0)];
    else {
      const run = Math.max(count, count === 0 ? value : 0);
      if (x + run > width) throw new Error(`a run of ${run} pixels leaves row ${y}`);
      if (count > 0) rows.fill(value, y * width + x, y * width + x + run);
      else {
        if (at + run > data.byteLength) throw new Error("the file ends before its last pixel");
        rows.set(data.subarray(at, at + run), y * width + x);
        // Literal pixels are padded to whole words.
        at += run + (run & 1);
      }
      x += run;
    }
  }
  return rows;
}
