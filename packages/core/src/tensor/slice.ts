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
    const { elements } = tensor;
    const [from, to] = [start * this.#perRow, (start + rows) * this.#perRow];
    const part = Array.isArray(elements)
      ? elements.slice(from, to)
      : ((elements as Float32Array).subarray(from, to) as TypedArray);
    return Tensor.fromElements(tensor.datatype, [rows, ...this.#rowShape], part);
  }
}
