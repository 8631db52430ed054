import type { Allocate } from "../../../tensor/concat.js";

/**
 * Memory in which an instance joins the inputs of its batches. A batch overwrites that of the batch before, so the
 * memory is as large as the largest batch so far, and its pages are touched once.
 */
export class MergeMemory {
  readonly #buffers = new Map<string, ArrayBuffer>();

  /** The memory of an input. */
  readonly of = (name: string): Allocate => {
    return (byteSize) => {
      let buffer = this.#buffers.get(name);
      if (buffer === undefined || buffer.byteLength < byteSize) {
        buffer = new ArrayBuffer(byteSize);
        this.#buffers.set(name, buffer);
      }
      return new Uint8Array(buffer, 0, byteSize);
    };
  };
}
