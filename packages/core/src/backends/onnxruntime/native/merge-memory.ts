import type { JoinMemory } from "../../../tensor/concat.js";

/**
 * Memory in which an instance joins the inputs of its batches. A batch overwrites that of the batch before, so the
 * memory is as large as the largest batch so far, and its pages are touched once.
 */
export class MergeMemory {
  readonly #buffers = new Map<string, ArrayBuffer>();

  /** The memory of an input. */
  readonly of = (name: string): JoinMemory => {
    return (byteSize) => {
      const known = this.#buffers.get(name);
      if (known !== undefined && known.byteLength >= byteSize) return known;
      const buffer = new ArrayBuffer(byteSize);
      this.#buffers.set(name, buffer);
      return buffer;
    };
  };
}
