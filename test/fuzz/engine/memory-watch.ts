/** Bytes by which memory may grow after the first quarter of a run. */
const MAX_GROWTH_BYTES = 32 << 20;

/** Memory after a collection. */
export interface MemoryReading {
  readonly runs: number;
  /** Heap and buffers without what the fuzzer keeps. */
  readonly usedBytes: number;
  readonly rssBytes: number;
}

/** Reads memory after collections, and tells whether it returns. It needs `node --expose-gc`. */
export class MemoryWatch {
  readonly #readings: MemoryReading[] = [];

  /** @param ownBytes what the fuzzer itself keeps */
  read(runs: number, ownBytes: number): void {
    globalThis.gc?.();
    const { heapUsed, external, rss } = process.memoryUsage();
    this.#readings.push({ runs, usedBytes: heapUsed + external - ownBytes, rssBytes: rss });
  }

  get last(): MemoryReading | undefined {
    return this.#readings.at(-1);
  }

  /** Bytes by which used memory grew after the first quarter of the readings. */
  get growthBytes(): number {
    const first = this.#readings[Math.floor(this.#readings.length / 4)];
    return first === undefined ? 0 : this.last!.usedBytes - first.usedBytes;
  }

  get returns(): boolean {
    return this.growthBytes <= MAX_GROWTH_BYTES;
  }
}
