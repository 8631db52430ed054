import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** Bytes with random access: an array, or a file that is only partly in memory. */
export interface ByteSource {
  readonly length: number;
  /** Bytes `[offset, offset + length)`; fewer at the end. Valid until the next call. */
  read(offset: number, length: number): Uint8Array;
  close(): void;
}

/** Source over an array. */
export function bytesSource(bytes: Uint8Array): ByteSource {
  return {
    length: bytes.byteLength,
    read: (offset, length) => bytes.subarray(offset, offset + length),
    close() {},
  };
}

const WINDOW_BYTES = 64 * 1024;

/** Source over a file, read through a window of 64 KiB. Throws what `fs` throws for a file that cannot be opened. */
export function fileSource(path: string): ByteSource {
  const file = openSync(path, "r");
  let window = new Uint8Array(0);
  let windowStart = 0;
  return {
    length: fstatSync(file).size,
    read(offset, length) {
      if (offset < windowStart || offset + length > windowStart + window.byteLength) {
        const buffer = new Uint8Array(Math.max(WINDOW_BYTES, length));
        window = buffer.subarray(0, readSync(file, buffer, 0, buffer.byteLength, offset));
        windowStart = offset;
      }
      return window.subarray(offset - windowStart, offset - windowStart + length);
    },
    close: () => closeSync(file),
  };
}
