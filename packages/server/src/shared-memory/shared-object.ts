import { closeSync, constants, fstatSync, readSync, writeSync } from "node:fs";
import { type Koffi, type NativeLibrary, requireKoffi } from "@tritonjs/core/internal/server";
import { errorFor } from "@tritonjs/protocol";

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
  constructor(private readonly descriptor: number) {}

  byteSize(): number {
    return sizeOf(this.descriptor);
  }

  read(at: number, into: Uint8Array): boolean {
    return transfer(into, (done, count) => readSync(this.descriptor, into, done, count, at + done));
  }

  write(at: number, bytes: Uint8Array): boolean {
    // Writing past the end would extend the object.
    if (bytes.byteLength > this.byteSize() - at) return false;
    try {
      return transfer(bytes, (done, count) => writeSync(this.descriptor, bytes, done, count, at + done));
    } catch {
      return false;
    }
  }

  close(): void {
    closeSync(this.descriptor);
  }
}

/** An object that is mapped into memory as a whole. */
export class MappedObject implements SharedObject {
  #mapped: { readonly address: bigint; readonly byteSize: number } | undefined;

  constructor(
    private readonly posix: Posix,
    private readonly descriptor: number,
  ) {}

  byteSize(): number {
    return sizeOf(this.descriptor);
  }

  read(at: number, into: Uint8Array): boolean {
    const address = this.#address(at, into.byteLength);
    if (address !== undefined) this.posix.copy(into, address, into.byteLength);
    return address !== undefined;
  }

  write(at: number, bytes: Uint8Array): boolean {
    const address = this.#address(at, bytes.byteLength);
    if (address !== undefined) this.posix.copy(address, bytes, bytes.byteLength);
    return address !== undefined;
  }

  close(): void {
    if (this.#mapped !== undefined) this.posix.unmap(this.#mapped.address, this.#mapped.byteSize);
    this.#mapped = undefined;
    closeSync(this.descriptor);
  }

  #address(at: number, byteSize: number): bigint | undefined {
    const size = this.byteSize();
    if (byteSize > size - at) return undefined;
    this.#mapped ??= this.#map(size);
    if (this.#mapped === undefined || byteSize > this.#mapped.byteSize - at) return undefined;
    return this.#mapped.address + BigInt(at);
  }

  #map(byteSize: number): { readonly address: bigint; readonly byteSize: number } | undefined {
    const address = this.posix.map(this.descriptor, byteSize);
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

/** The functions used of the system's C library. {@link loadPosix} loads them through koffi. */
export interface Posix {
  readonly pageSize: number;
  /** Opens a shared memory object for reading and writing. Returns its descriptor, or -1 when it does not exist. */
  open(key: string): number;
  /** Creates an object, or opens it when it exists and `exclusive` is false. Returns its descriptor or -1. */
  create(key: string, exclusive: boolean): number;
  /** Error number of the last call, one of `os.constants.errno`. */
  errno(): number;
  unlink(key: string): boolean;
  /** Maps an object into memory. Returns the address, undefined when it cannot be mapped. */
  map(descriptor: number, byteSize: number): bigint | undefined;
  unmap(address: bigint, byteSize: number): void;
  /** Copies between an array and mapped memory, in either direction. */
  copy(to: Uint8Array | bigint, from: Uint8Array | bigint, byteSize: number): void;
}

const OWNER_ONLY = 0o600;
const PROT_READ_WRITE = 3;
const MAP_SHARED = 1;
const MAP_FAILED = 2n ** 64n - 1n;
const FAILED = -1;

let loaded: Promise<Posix> | undefined;

/** Loads the functions for shared memory of this system, which need the package koffi. */
export function loadPosix(): Promise<Posix> {
  loaded ??= bindPosix(async () => requireKoffi(), process.platform);
  return loaded;
}

/** Loads the functions with a given koffi. */
export async function bindPosix(
  importKoffi: () => Promise<Pick<Koffi, "load" | "errno">>,
  platform: string,
): Promise<Posix> {
  if (platform === "win32") {
    throw errorFor("PLATFORM_NOT_SUPPORTED", "Shared memory feature is currently not supported on Windows");
  }
  // Deno's files are not the descriptors of the system.
  if (process.versions.deno !== undefined) {
    throw errorFor("PLATFORM_NOT_SUPPORTED", "Shared memory feature is currently not supported on Deno");
  }
  try {
    return toPosix(await importKoffi());
  } catch (cause) {
    throw errorFor(
      "PACKAGE_NOT_INSTALLED",
      "cannot load the package 'koffi', which shared memory needs: npm install koffi",
      { cause },
    );
  }
}

function toPosix(koffi: Pick<Koffi, "load" | "errno">): Posix {
  const library = koffi.load(null);
  const shm = shmLibrary(koffi);
  const open = shm.func("int shm_open(const char *name, int flags, ...)");
  const unlink = shm.func("int shm_unlink(const char *name)");
  const map = library.func(
    "void *mmap(void *at, size_t size, int protection, int flags, int fd, int64_t offset)",
  );
  const unmap = library.func("int munmap(void *at, size_t size)");
  const copy = library.func("void *memcpy(void *to, void *from, size_t size)");
  const openWith = (key: string, flags: number): number =>
    key.includes("\0") ? FAILED : open(key, flags, "int", OWNER_ONLY);
  return {
    pageSize: library.func("int getpagesize()")(),
    open: (key) => openWith(key, constants.O_RDWR),
    create: (key, exclusive) =>
      openWith(key, constants.O_RDWR | constants.O_CREAT | (exclusive ? constants.O_EXCL : 0)),
    errno: () => koffi.errno(),
    unlink: (key) => !key.includes("\0") && unlink(key) === 0,
    map(descriptor, byteSize) {
      const address = BigInt.asUintN(64, map(null, byteSize, PROT_READ_WRITE, MAP_SHARED, descriptor, 0));
      return address === MAP_FAILED ? undefined : address;
    },
    unmap: (address, byteSize) => void unmap(address, byteSize),
    copy: (to, from, byteSize) => void copy(to, from, byteSize),
  };
}

/** Before version 2.34 of glibc, `shm_open` was in a library of its own. */
function shmLibrary(koffi: Pick<Koffi, "load">): NativeLibrary {
  const library = koffi.load(null);
  try {
    library.func("int shm_unlink(const char *name)");
    return library;
  } catch {
    return koffi.load("librt.so.1");
  }
}
