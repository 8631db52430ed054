import { readFileSync } from "node:fs";
import { Tensor } from "@tritonjs/protocol";

/** Reads a file of the fixtures. */
export function fixture(name: string): Uint8Array {
  return new Uint8Array(readFileSync(new URL(`../fixtures/${name}`, import.meta.url)));
}

/** Results of Pillow and numpy: `make_fixtures.py` makes them. */
const expected = JSON.parse(Buffer.from(fixture("expected.json")).toString()) as {
  readonly images: Readonly<Record<string, string>>;
  readonly audio: Readonly<Record<string, { readonly shape: readonly number[]; readonly data: string }>>;
};

/** Pixels that Pillow made. */
export function expectedPixels(name: string): Uint8Array {
  return new Uint8Array(Buffer.from(expected.images[name]!, "base64"));
}

/** Values that numpy computed. */
export function expectedValues(name: string): {
  readonly shape: readonly number[];
  readonly values: Float32Array;
} {
  const { shape, data } = expected.audio[name]!;
  return { shape, values: new Float32Array(new Uint8Array(Buffer.from(data, "base64")).buffer) };
}

/** Largest and mean difference of two lists of the same length. */
export function difference(
  got: ArrayLike<number>,
  wanted: ArrayLike<number>,
): { largest: number; mean: number } {
  if (got.length !== wanted.length) throw new Error(`expected ${wanted.length} values, got ${got.length}`);
  const all = Array.from(got, (value, i) => Math.abs(value - wanted[i]!));
  return {
    largest: all.reduce((most, value) => Math.max(most, value), 0),
    mean: all.reduce((sum, value) => sum + value, 0) / all.length,
  };
}

/** The inputs of a request with a file for each row. */
export function inputsOf(files: readonly Uint8Array[]): ReadonlyMap<string, Tensor> {
  return new Map([["audio", Tensor.fromElements("BYTES", [files.length, 1], [...files])]]);
}
