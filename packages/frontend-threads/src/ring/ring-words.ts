/*
 * A ring of frames in shared memory, with one thread that writes and one that reads:
 *
 *   words: HEAD | TAIL | SLEEPS | WAITS      data: ...tail [frame][frame][frame] head...
 *
 * A frame starts with its length in bytes, a multiple of 8, and does not go past the end of the data. If the next frame
 * would, a negative length marks the rest of the data as unused. HEAD and TAIL count units of 8 bytes, and wrap around
 * at 2^32.
 */

/** Units written so far. In cache lines of their own, because two threads write them. */
export const HEAD = 0;
/** Units read so far. */
export const TAIL = 16;
/** 1 while the reader waits for a wake-up. */
export const SLEEPS = 32;
/** 1 while the writer waits for space. */
export const WAITS = 48;

/** Bytes of the words before the data. */
export const WORD_BYTES = 256;

/** Bytes of a unit. Tensors of all data types are aligned to it. */
export const UNIT = 8;

/** Length that marks the rest of the data as unused. */
export const SKIP = -1;

/** Bytes of data of a ring: some thousand small requests, or the few of medium size that one turn brings. */
export const RING_BYTES = 1 << 20;

/** Most bytes of a frame. */
export const MAX_FRAME_BYTES = RING_BYTES / 4;

/** Makes the memory of a ring. */
export function createRing(bytes = RING_BYTES): SharedArrayBuffer {
  return new SharedArrayBuffer(WORD_BYTES + bytes);
}

/** Rounds a number of bytes up to whole units. */
export function wholeUnits(bytes: number): number {
  return (bytes + UNIT - 1) & -UNIT;
}
