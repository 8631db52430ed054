import {
  elementByteSize,
  elementCount,
  type Shape,
  sameShape,
  type Tensor,
  TritonError,
} from "@tritonjs/protocol";
import type { CudaStream } from "../../gpu/cuda-runtime.js";

/** Copies below this size are made on the event loop, because a thread of the pool costs more than they do. */
export const SMALL_BYTES = 64 * 1024;

/** A place on the GPU, and the shape of the tensor there, which is larger than that of the batch if a graph pads it. */
export interface PlacedShape {
  readonly place: bigint;
  readonly shape: Shape;
}

/** Copies of tensors to their places on a GPU of CUDA, and from there. */
export class DeviceCopies {
  constructor(
    private readonly stream: CudaStream,
    private readonly deviceId: number,
  ) {}

  /** Copies an input to its place. Elements that only the tensor of a graph has are zero. */
  async copyIn(
    name: string,
    { place, shape: padded }: PlacedShape,
    { datatype }: Tensor,
    shape: Shape,
    from: bigint,
    isQuick: boolean,
  ): Promise<void> {
    const size = elementByteSize(datatype as "FP32");
    if (sameShape(shape, padded)) {
      return this.#copy(name, place, from, elementCount(shape) * size, isQuick);
    }
    try {
      this.stream.clear(place, elementCount(padded) * size);
    } catch (cause) {
      throw this.#notCopied(`tensor '${name}'`, cause);
    }
    for (const { at, paddedAt, width, pitch, height } of paddedRows(shape, padded)) {
      const [row, rowOf] = [width * size, pitch * size];
      const to = place + BigInt(paddedAt * size);
      await this.#copyRows(name, to, rowOf, from + BigInt(at * size), row, row, height, isQuick);
    }
  }

  /** Copies an output from its place, without the elements that only the tensor of a graph has. */
  async copyOut(
    name: string,
    { place, shape: padded }: PlacedShape,
    { datatype, shape, byteLength }: Tensor,
    to: bigint,
    isQuick: boolean,
  ): Promise<void> {
    if (sameShape(shape, padded)) return this.#copy(name, to, place, byteLength, isQuick);
    const size = elementByteSize(datatype as "FP32");
    for (const { at, paddedAt, width, pitch, height } of paddedRows(shape, padded)) {
      const [row, rowOf] = [width * size, pitch * size];
      const from = place + BigInt(paddedAt * size);
      await this.#copyRows(name, to + BigInt(at * size), row, from, rowOf, row, height, isQuick);
    }
  }

  async #copyRows(
    name: string,
    to: bigint,
    toPitch: number,
    from: bigint,
    fromPitch: number,
    width: number,
    height: number,
    isQuick: boolean,
  ): Promise<void> {
    if (height === 1) return this.#copy(name, to, from, width, isQuick);
    try {
      if (isQuick) this.stream.copyRows(to, toPitch, from, fromPitch, width, height);
      else await this.stream.copyRowsAsync(to, toPitch, from, fromPitch, width, height);
    } catch (cause) {
      throw this.#notCopied(`tensor '${name}'`, cause);
    }
  }

  async #copy(name: string, to: bigint, from: bigint, byteSize: number, isQuick: boolean): Promise<void> {
    try {
      if (isQuick) this.stream.copy(to, from, byteSize);
      else await this.stream.copyAsync(to, from, byteSize);
    } catch (cause) {
      throw this.#notCopied(`tensor '${name}' of ${byteSize} bytes`, cause);
    }
  }

  #notCopied(what: string, cause: unknown): TritonError {
    const text = `cannot copy ${what} to or from GPU ${this.deviceId}: ${TritonError.from(cause).message}`;
    return new TritonError("INTERNAL", text, { cause });
  }

  /** Waits for the queued copies. */
  async wait(byteSize: number): Promise<void> {
    try {
      if (byteSize < SMALL_BYTES) this.stream.wait();
      else await this.stream.waitAsync();
    } catch (cause) {
      throw this.#notCopied(`${byteSize} bytes`, cause);
    }
  }
}

/** Rows of one copy between a tensor whose elements follow each other and a larger tensor around it. */
interface PaddedRows {
  /** First element in the smaller tensor, and in the larger one. */
  readonly at: number;
  readonly paddedAt: number;
  /** Elements of each row: the rows of the smaller tensor follow each other. */
  readonly width: number;
  /** Elements from the beginning of one row of the larger tensor to that of the next. */
  readonly pitch: number;
  readonly height: number;
}

/**
 * Divides the copy of a tensor into the corner of a larger one, or out of it, into as few copies of rows as possible:
 *
 * ```
 * [2, 3] in [2, 4]      a b c .
 *                       d e f .     one copy of two rows: width 3, pitch 4
 * ```
 *
 * @param padded shape of the larger tensor, of the same rank
 */
export function paddedRows(shape: Shape, padded: Shape): PaddedRows[] {
  if (shape.includes(0)) return [];
  // Further rows at the end of the first axis move nothing.
  const isLonger = (size: number, axis: number) => axis > 0 && size !== padded[axis];
  const inner = shape.findLastIndex(isLonger);
  const outer = inner < 0 ? -1 : shape.slice(0, inner).findLastIndex(isLonger);
  const width = sizeOf(shape.slice(Math.max(inner, 0)));
  const pitch = inner < 0 ? width : sizeOf(padded.slice(inner));
  const height = inner < 0 ? 1 : sizeOf(shape.slice(outer + 1, inner));
  let starts = [0];
  for (let axis = 0; axis <= outer; axis++) {
    const stride = sizeOf(padded.slice(axis + 1));
    starts = starts.flatMap((start) => Array.from({ length: shape[axis]! }, (_, i) => start + i * stride));
  }
  return starts.map((paddedAt, i) => ({ at: i * width * height, paddedAt, width, pitch, height }));
}

function sizeOf(dims: Shape): number {
  return dims.reduce((product, size) => product * size, 1);
}
