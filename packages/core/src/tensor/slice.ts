import { elementCount, type Shape, Tensor, type TypedArray } from "@tritonjs/protocol";

/** Rows `[start, start + rows)` of a tensor's first axis, as a view. */
export function sliceRows(tensor: Tensor, start: number, rows: number): Tensor {
  return new RowSlices(tensor, start).next(rows);
}

/** Cuts a tensor along its first axis into consecutive views. */
export class RowSlices {
  readonly #tensor: Tensor;
  readonly #rowShape: Shape;
  readonly #perRow: number;
  #row: number;
  /** Shape of the previous slice, which the next one shares if it has as many rows. */
  #shape: Shape = [];

  constructor(tensor: Tensor, start = 0) {
    this.#tensor = tensor;
    this.#rowShape = tensor.shape.slice(1);
    this.#perRow = elementCount(this.#rowShape);
    this.#row = start;
  }

  /** Returns the next `rows` rows. */
  next(rows: number): Tensor {
    const tensor = this.#tensor;
    const start = this.#row;
    this.#row += rows;
    if (start === 0 && rows === tensor.shape[0]) return tensor;
    const { datatype, elements } = tensor;
    const from = start * this.#perRow;
    const count = rows * this.#perRow;
    if (this.#shape[0] !== rows) this.#shape = [rows, ...this.#rowShape];
    return datatype === "BYTES"
      ? Tensor.fromElements(datatype, this.#shape, (elements as Uint8Array[]).slice(from, from + count))
      : Tensor.fromPart(datatype, this.#shape, elements as TypedArray, from, count);
  }
}
