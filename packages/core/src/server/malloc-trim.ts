import { type Clock, quietClock } from "../clock/clock.js";
import { type NativeFunction, requireKoffi } from "../koffi.js";
import { residentBytes } from "../observe/machine/resident-bytes.js";

/** Milliseconds between two looks at the resident memory. */
const LOOK_EVERY_MS = 30_000;

/** Growth of the resident memory in bytes from which free memory is returned. Returning it takes processor time. */
const RETURN_AFTER_BYTES = 8 * 1024 * 1024;

/** A process whose free memory can be returned to the system. */
export interface TrimmedProcess {
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
    clock.setTimer(LOOK_EVERY_MS, () => void look());
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
