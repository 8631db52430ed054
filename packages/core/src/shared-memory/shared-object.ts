import { closeSync, fstatSync, readSync, writeSync } from "node:fs";
import type { Posix } from "./posix.js";

/** An open shared memory object. Its contents are only copied; there are no views of them. */
export interface SharedObject {
  /** Current size in bytes. Other processes that have the object open may change it. */
  byteSize(): number;
  /** Copies from an offset in the object. Returns false when the object ends too early. */
  read(at: number, into: Uint8Array): boolean;
  /** Copies to an offset in the object. Returns false when the object ends too early or has no memory left. */
  write(at: number, bytes: Uint8Array): boolean;
  close(): void;
}

/**
 * Opens the object behind a descriptor. Linux reads and writes it like a file, at the cost of a copy. Such a call fails
 * when another process has shrunk the object, or when there is no memory for its pages. In both cases, touching mapped
 * memory would end the process. macOS can only map the object.
 */
export function sharedObject(posix: Posix, descriptor: number): SharedObject {
  return process.platform === "darwin"
    ? new MappedObject(posix, descriptor)
    : new DescriptorObject(descriptor);
}

/** Largest number of bytes that one system call moves. */
const MAX_TRANSFER = 1 << 30;

/** An object that is read and written through its descriptor. */
export class DescriptorObject implements SharedObject {
  readonly #descriptor: number;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  byteSize(): number {
    return sizeOf(this.#descriptor);
  }

  read(at: number, into: Uint8Array): boolean {
    return transfer(into, (done, count) => readSync(this.#descriptor, into, done, count, at + done));
  }

  write(at: number, bytes: Uint8Array): boolean {
    // Writing past the end would extend the object.
    if (bytes.byteLength > this.byteSize() - at) return false;
    try {
      return transfer(bytes, (done, count) => writeSync(this.#descriptor, bytes, done, count, at + done));
    } catch {
      return false;
    }
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

/** An object that is mapped into memory as a whole. */
export class MappedObject implements SharedObject {
  readonly #posix: Posix;
  readonly #descriptor: number;
  #mapped: { readonly address: bigint; readonly byteSize: number } | undefined;

  constructor(posix: Posix, descriptor: number) {
    this.#posix = posix;
    this.#descriptor = descriptor;
  }

  byteSize(): number {
    return sizeOf(this.#descriptor);
  }

  read(at: number, into: Uint8Array): boolean {
    const address = this.#address(at, into.byteLength);
    if (address !== undefined) this.#posix.copy(into, address, into.byteLength);
    return address !== undefined;
  }

  write(at: number, bytes: Uint8Array): boolean {
    const address = this.#address(at, bytes.byteLength);
    if (address !== undefined) this.#posix.copy(address, bytes, bytes.byteLength);
    return address !== undefined;
  }

  close(): void {
    if (this.#mapped !== undefined) this.#posix.unmap(this.#mapped.address, this.#mapped.byteSize);
    this.#mapped = undefined;
    closeSync(this.#descriptor);
  }

  #address(at: number, byteSize: number): bigint | undefined {
    const size = this.byteSize();
    if (byteSize > size - at) return undefined;
    this.#mapped ??= this.#map(size);
    if (this.#mapped === undefined || byteSize > this.#mapped.byteSize - at) return undefined;
    return this.#mapped.address + BigInt(at);
  }

  #map(byteSize: number): { readonly address: bigint; readonly byteSize: number } | undefined {
    const address = this.#posix.map(this.#descriptor, byteSize);
    return address === undefined ? undefined : { address, byteSize };
  }
}

function sizeOf(descriptor: number): number {
  return Math.min(fstatSync(descriptor).size, Number.MAX_SAFE_INTEGER);
}

function transfer(bytes: Uint8Array, move: (done: number, count: number) => number): boolean {
  let done = 0;
  while (done < bytes.byteLength) {
    const moved = move(done, Math.min(bytes.byteLength - done, MAX_TRANSFER));
    if (moved === 0) return false;
    done += moved;
  }
  return true;
}
