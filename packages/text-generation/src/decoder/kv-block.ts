import { type DataType, Tensor } from "@tritonjs/protocol";

/** Keys or values of one layer: an input of the graph. */
export interface KvLayer {
  readonly input: string;
  readonly output: string;
  readonly heads: number;
  readonly size: number;
}

/** How the keys and values of a model lie in its tensors. */
export interface KvLayout {
  readonly layers: readonly KvLayer[];
  readonly datatype: "FP32" | "FP16";
}

/** Bytes that the keys and values of one token need. */
export function bytesPerToken({ layers, datatype }: KvLayout): number {
  const elements = layers.reduce((sum, { heads, size }) => sum + heads * size, 0);
  return elements * (datatype === "FP16" ? 2 : 4);
}

/**
 * Keys and values of several texts, as the graph takes and returns them: for each layer a tensor
 * `[rows, heads, width, size]`. It never changes, so several texts may use parts of it.
 */
export interface KvBlock {
  readonly tensors: readonly Tensor[];
  readonly rows: number;
  readonly width: number;
}

/** The keys and values of one text: columns `start` to `start + length` of a row of a block. */
export interface KvSlice {
  readonly block: KvBlock;
  readonly row: number;
  readonly start: number;
  readonly length: number;
}

/**
 * Puts slices below each other, each at the right end of its row. Columns before it are zero, and the attention mask
 * hides them.
 *
 * ```
 * row 0   . . . a a a      The next token of each text comes at the right, so the result of a step
 * row 1   b b b b b b      is the input of the next one without a copy, as long as the rows stay.
 * row 2   . c c c c c
 * ```
 *
 * Returns the block of the slices itself if they already lie like this.
 */
export function alignRight(slices: readonly (KvSlice | undefined)[], layout: KvLayout): KvBlock {
  const block = slices[0]?.block;
  if (block !== undefined && block.rows === slices.length && slices.every(isInPlace)) return block;
  const width = Math.max(...slices.map((slice) => slice?.length ?? 0));
  const tensors = layout.layers.map((layer, i) => {
    const { heads, size } = layer;
    const elements = newElements(layout.datatype, slices.length * heads * width * size);
    for (const [row, slice] of slices.entries()) {
      if (slice !== undefined) copyRow(slice, i, layer, elements, row, width);
    }
    return Tensor.fromElements(layout.datatype, [slices.length, heads, width, size], elements);
  });
  return { tensors, rows: slices.length, width };

  function isInPlace(slice: KvSlice | undefined, row: number): boolean {
    return slice?.block === block && slice?.row === row && slice.start + slice.length === block!.width;
  }
}

/** Copies a slice to a block of its own, unless it already has nearly all of its block. */
export function detached(slice: KvSlice, layout: KvLayout): KvSlice {
  const { block, length } = slice;
  if (block.rows === 1 && block.width <= 1.25 * length) return slice;
  return { block: alignRight([slice], layout), row: 0, start: 0, length };
}

type KvElements = Float32Array | Uint16Array;

function newElements(datatype: DataType, length: number): KvElements {
  return datatype === "FP16" ? new Uint16Array(length) : new Float32Array(length);
}

/** Copies a slice of one layer to the right end of a row. */
function copyRow(
  { block, row, start, length }: KvSlice,
  index: number,
  { heads, size }: KvLayer,
  target: KvElements,
  targetRow: number,
  targetWidth: number,
): void {
  const source = block.tensors[index]!.elements as KvElements;
  for (let head = 0; head < heads; head++) {
    const from = ((row * heads + head) * block.width + start) * size;
    const to = ((targetRow * heads + head + 1) * targetWidth - length) * size;
    target.set(source.subarray(from, from + length * size), to);
  }
}
