import ndarray, { type NdArray } from "ndarray";

/** Elements as callbacks see them. */
export type Elements = Int32Array | Uint32Array | Float32Array | Float64Array | Uint8Array | Uint8Array[];

/** A tensor as a callback sees it. */
export type Array_ = NdArray<Elements>;

/** A tensor of the given shape over `data`. */
export function tensor(data: Elements, shape: readonly number[]): Array_ {
  return ndarray(data as Float32Array, [...shape]) as unknown as Array_;
}

/** A BYTES tensor; its shape is that of a list unless given. */
export function strings(
  texts: readonly (string | Uint8Array)[],
  shape: readonly number[] = [texts.length],
): Array_ {
  const data = texts.map((text) => (typeof text === "string" ? Buffer.from(text, "utf8") : text));
  return tensor(data, shape);
}

/** An INT32 tensor; its shape is that of a list unless given. */
export function int32(values: readonly number[], shape: readonly number[] = [values.length]): Array_ {
  return tensor(Int32Array.from(values), shape);
}

/** The elements of an input in row-major order. Inputs come contiguous. */
export function elements(array: Array_ | undefined): Elements {
  if (array === undefined) throw new Error("missing input");
  return array.data;
}

/** The first element of a numeric input, `otherwise` when the input is missing. */
export function firstNumber(array: Array_ | undefined, otherwise = 0): number {
  return array === undefined ? otherwise : Number(array.data[0]);
}

/** The first element of a BYTES input as text. */
export function firstText(array: Array_ | undefined): string {
  return text((elements(array) as Uint8Array[])[0] as Uint8Array);
}

/** The text of one BYTES element. */
export function text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

/** Combines two INT32 tensors of one shape element by element, wrapping. */
export function zipInt32(
  a: Array_ | undefined,
  b: Array_ | undefined,
  combine: (x: number, y: number) => number,
): Array_ {
  const left = elements(a) as Int32Array;
  const right = elements(b) as Int32Array;
  return tensor(
    left.map((value, i) => combine(value, right[i] ?? 0)),
    a?.shape ?? [],
  );
}

/** Maps an INT32 tensor element by element, wrapping. */
export function mapInt32(a: Array_ | undefined, change: (x: number) => number): Array_ {
  return tensor((elements(a) as Int32Array).map(change), a?.shape ?? []);
}
