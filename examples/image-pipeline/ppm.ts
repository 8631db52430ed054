/** A picture: red, green and blue of each pixel, row by row. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly rgb: Uint8Array;
}

/**
 * Reads a binary PPM file (`P6`), a very simple picture format.
 *
 * @throws RangeError if the bytes are not such a file.
 */
export function readPpm(bytes: Uint8Array): Picture {
  const header = /^P6\s+(\d+)\s+(\d+)\s+255\s/.exec(Buffer.from(bytes.subarray(0, 64)).toString("latin1"));
  const [width, height] = [Number(header?.[1]), Number(header?.[2])];
  const rgb = bytes.subarray(header?.[0].length ?? 0);
  if (!(width > 0 && height > 0) || rgb.length !== width * height * 3) {
    throw new RangeError(`not a PPM picture: ${bytes.length} bytes`);
  }
  return { width, height, rgb };
}

/** Writes a binary PPM file. */
export function writePpm({ width, height, rgb }: Picture): Uint8Array {
  return Buffer.concat([Buffer.from(`P6 ${width} ${height} 255\n`, "latin1"), rgb]);
}

/** Resizes a picture by nearest pixel. Returns colours from 0 to 1, channel by channel. */
export function toPlanes({ width, height, rgb }: Picture, size: number): Float32Array {
  const planes = new Float32Array(3 * size * size);
  for (let y = 0; y < size; y++) {
    const row = Math.floor((y * height) / size) * width;
    for (let x = 0; x < size; x++) {
      const from = 3 * (row + Math.floor((x * width) / size));
      for (let channel = 0; channel < 3; channel++) {
        planes[(channel * size + y) * size + x] = rgb[from + channel]! / 255;
      }
    }
  }
  return planes;
}
