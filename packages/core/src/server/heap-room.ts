import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { type Clock, quietClock } from "../clock/clock.js";

/*
 * V8 collects the whole heap when it has grown by a factor since the last such collection. V8 chooses the factor, which
 * comes near 1 while much memory is allocated. All array buffers count, those of requests that are over too: up to
 * 32 MiB of them wait for the next collection of young objects. A server with a heap of 20 MB then collected its whole
 * heap every 50 requests of 600 KB, which took half of its processor time.
 */

/** Bytes by which the heap may grow: what waits for the collection of young objects, and as much that is promoted. */
const ROOM_BYTES = 64 * 1024 * 1024;

/** A larger heap grows by more than the room in V8's own way. */
const LEAST_PERCENT = 50;

/** The setting is that of all threads, whose heaps may be larger than the one of the main thread. */
const MOST_PERCENT = 400;

const LOOK_EVERY_MS = 10_000;

const FLAG = "--heap-growing-percent";

/** The heap of a process. */
export interface GrowingHeap {
  usedBytes(): number;
  /** Sets the percentage by which the heap grows between two collections; 0 leaves it to V8. */
  grow(percent: number): void;
}

/**
 * Lets the heaps of this process grow by 64 MiB between two collections of the whole heap, also while they are small.
 * For a program of its own, because the setting is that of the whole process.
 *
 * @returns false if nothing was done, because the command line of Node sets the percentage
 */
export function keepHeapRoom(): boolean {
  if (process.execArgv.some((argument) => argument.replaceAll("_", "-").startsWith(FLAG))) return false;
  const own: GrowingHeap = {
    usedBytes: () => getHeapStatistics().used_heap_size,
    grow: (percent) => setFlagsFromString(`${FLAG}=${percent}`),
  };
  growByRoom(own, quietClock);
  return true;
}

/** Sets the percentage now and from time to time, by the size of the heap. */
export function growByRoom(heap: GrowingHeap, clock: Pick<Clock, "setTimer">): void {
  let last = 0;
  const look = (): void => {
    const wanted = Math.round((100 * ROOM_BYTES) / heap.usedBytes());
    const percent = wanted < LEAST_PERCENT ? 0 : Math.min(wanted, MOST_PERCENT);
    // Each setting changes the flags of the process, so small differences are left alone.
    if (percent === 0 ? last !== 0 : Math.abs(percent - last) > last / 4) {
      heap.grow(percent);
      last = percent;
    }
    clock.setTimer(LOOK_EVERY_MS, look);
  };
  look();
}
