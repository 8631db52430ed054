import { availableParallelism } from "node:os";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import {
  type Clock,
  type NativeFunction,
  quietClock,
  requireKoffi,
  residentBytes,
} from "@tritonjs/core/internal";

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

const HEAP_LOOK_EVERY_MS = 10_000;

const FLAG = "--heap-growing-percent";

interface GrowingHeap {
  usedBytes(): number;
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
    clock.setTimer(HEAP_LOOK_EVERY_MS, look);
  };
  look();
}

/*
 * Each thread takes memory from an arena of glibc's malloc, of which a process has up to eight for each processor. By
 * default glibc raises two thresholds to the largest buffer that was ever freed and to twice its size, at most 32 and
 * 64 MiB. From then on every arena keeps buffers below the first threshold, and free memory at its end up to the second.
 * After bursts of large requests a server whose workers restart would fill one arena after another with free memory.
 */

const THRESHOLDS = [
  /** Bytes from which a buffer is a mapping of its own. Mapping a smaller one takes too much of a request's time. */
  { parameter: -3, variable: "MALLOC_MMAP_THRESHOLD_", value: 4 * 1024 * 1024 },
  /** Bytes of free memory that an arena keeps at its end. */
  { parameter: -1, variable: "MALLOC_TRIM_THRESHOLD_", value: 8 * 1024 * 1024 },
];

/** Further threads share the arenas. No more threads than processors allocate at the same time. */
const ARENAS = { parameter: -8, variable: "MALLOC_ARENA_MAX", value: Math.max(2, availableParallelism()) };

/**
 * Limits the free memory that glibc's malloc keeps, for all threads of this process: fixes the thresholds from which it
 * is returned to the system, and limits the number of arenas. Limits in the environment stay as they are.
 *
 * @returns false if nothing was done: the environment sets both, koffi is not installed, or the C library is not glibc
 */
export function limitMalloc(environment: NodeJS.ProcessEnv): boolean {
  if (process.platform !== "linux" || environment.GLIBC_TUNABLES?.includes("glibc.malloc.")) return false;
  const isSet = ({ variable }: { variable: string }) => environment[variable] !== undefined;
  // One threshold in the environment ends glibc's own changes of both.
  const limits = [...(THRESHOLDS.some(isSet) ? [] : THRESHOLDS), ...(isSet(ARENAS) ? [] : [ARENAS])];
  if (limits.length === 0) return false;
  try {
    const mallopt = requireKoffi().load(null).func("int mallopt(int parameter, int value)");
    return limits.every(({ parameter, value }) => mallopt(parameter, value) === 1);
  } catch {
    return false;
  }
}

/** Milliseconds between two looks at the resident memory. */
const TRIM_LOOK_EVERY_MS = 30_000;

/** Growth of the resident memory in bytes from which free memory is returned. Returning it takes processor time. */
const RETURN_AFTER_BYTES = 8 * 1024 * 1024;

interface TrimmedProcess {
  residentBytes(): number;
  /** Returns the free memory of all arenas of malloc, but for the ends of those after the first. */
  trim(): Promise<void>;
}

/**
 * Returns free memory of glibc's malloc to the system each time the resident memory has grown. By itself glibc returns
 * only memory at the end of an arena. Gaps between buffers in use would stay resident, and grow for hours.
 *
 * @returns false if nothing will be done: koffi is not installed, or the C library is not glibc
 */
export function returnFreeMemory(): boolean {
  const own = ownProcess();
  if (own !== undefined) trimWhenGrown(own, quietClock);
  return own !== undefined;
}

/** Looks at the resident memory from time to time, and trims it when it has grown since the last time. */
export function trimWhenGrown(own: TrimmedProcess, clock: Pick<Clock, "setTimer">): void {
  let least = own.residentBytes();
  const look = async () => {
    const bytes = own.residentBytes();
    least = Math.min(least, bytes);
    if (bytes - least >= RETURN_AFTER_BYTES) {
      await own.trim();
      least = own.residentBytes();
    }
    lookLater();
  };
  const lookLater = () => {
    clock.setTimer(TRIM_LOOK_EVERY_MS, () => void look());
  };
  lookLater();
}

/** This process; undefined where its free memory cannot be returned. */
export function ownProcess(): TrimmedProcess | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const library = requireKoffi().load(null);
    const mallocTrim = library.func("int malloc_trim(size_t pad)") as NativeFunction<[pad: number], number>;
    return {
      residentBytes,
      // On a thread of libuv's pool: returning hundreds of megabytes takes milliseconds.
      trim: () => new Promise((resolve) => mallocTrim.async(0, () => resolve())),
    };
  } catch {
    return undefined;
  }
}
