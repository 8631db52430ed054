import type { CudaPools, PinnedMemory } from "../../gpu/cuda-pools.js";

/** Pinned memory is allocated in steps of at least this size, which is a page. */
const PAGE_BYTES = 4096;

/**
 * Memory of the CPU that one instance uses again for each batch: for an input, the joined rows; for an output of a GPU,
 * what arrives from there. It is as large as the largest batch so far, so its pages are touched once.
 */
export class StagingMemory {
  readonly #plain = new Map<string, ArrayBuffer>();
  readonly #pinned = new Map<string, PinnedMemory>();

  /** @param pools gives pinned memory; without it, none is pinned */
  constructor(private readonly pools?: Pick<CudaPools, "pinned">) {}

  /** Memory of a tensor by its name. Its contents are those of an earlier batch. */
  of(name: string, byteSize: number): Uint8Array<ArrayBuffer> {
    const pinned = this.pools && this.#pinnedOf(name, byteSize);
    if (pinned !== undefined) return pinned.bytes.subarray(0, byteSize);
    let buffer = this.#plain.get(name);
    if (buffer === undefined || buffer.byteLength < byteSize) {
      buffer = new ArrayBuffer(byteSize);
      this.#plain.set(name, buffer);
    }
    return new Uint8Array(buffer, 0, byteSize);
  }

  /** Pinned memory of a tensor by its name; undefined if there is none. */
  pinned(name: string, byteSize: number): Uint8Array<ArrayBuffer> | undefined {
    return this.#pinnedOf(name, byteSize)?.bytes.subarray(0, byteSize);
  }

  /** Whether a view is one of this memory, and pinned. */
  isPinned({ buffer }: ArrayBufferView): boolean {
    for (const { bytes } of this.#pinned.values()) if (bytes.buffer === buffer) return true;
    return false;
  }

  get pinnedBytes(): number {
    return [...this.#pinned.values()].reduce((sum, { byteSize }) => sum + byteSize, 0);
  }

  /** Gives pinned memory back. No batch may use it. */
  close(): void {
    for (const memory of this.#pinned.values()) memory.free();
    this.#pinned.clear();
  }

  #pinnedOf(name: string, byteSize: number): PinnedMemory | undefined {
    const before = this.#pinned.get(name);
    if (before !== undefined && before.byteSize >= byteSize) return before;
    if (this.pools === undefined || byteSize === 0) return undefined;
    // The plain memory of a tensor that found no room is large enough.
    if ((this.#plain.get(name)?.byteLength ?? 0) >= byteSize) return undefined;
    before?.free();
    this.#pinned.delete(name);
    const memory = this.pools.pinned(roundedUp(byteSize, PAGE_BYTES));
    if (memory !== undefined) this.#pinned.set(name, memory);
    return memory;
  }
}

/** The next power of two, so that a batch which grows by a row seldom needs new memory. */
export function roundedUp(byteSize: number, least: number): number {
  return Math.max(least, 2 ** Math.ceil(Math.log2(byteSize)));
}
