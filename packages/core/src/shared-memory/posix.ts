import { constants } from "node:fs";
import { TritonError } from "@tritonjs/protocol";
import { type Koffi, type NativeLibrary, requireKoffi } from "../koffi.js";

/** The functions used of the system's C library. {@link loadPosix} loads them through koffi. */
export interface Posix {
  readonly pageSize: number;
  /** Opens a shared memory object for reading and writing. Returns its descriptor, or -1 when it does not exist. */
  open(key: string): number;
  /** Creates an object, or opens it when it exists and `exclusive` is false. Returns its descriptor or -1. */
  create(key: string, exclusive: boolean): number;
  /** Error number of the last call, one of `os.constants.errno`. */
  errno(): number;
  /** Removes the name of an object. Returns false when it had none. */
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

/**
 * Loads the functions for shared memory of this system.
 *
 * @throws TritonError UNSUPPORTED on Windows, UNAVAILABLE when the package koffi is not installed.
 */
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
    throw new TritonError("UNSUPPORTED", "Shared memory feature is currently not supported on Windows", {
      reason: "PLATFORM_NOT_SUPPORTED",
    });
  }
  try {
    return toPosix(await importKoffi());
  } catch (cause) {
    throw new TritonError(
      "UNAVAILABLE",
      "cannot load the package 'koffi', which shared memory needs: npm install koffi",
      {
        reason: "PACKAGE_NOT_INSTALLED",
        cause,
      },
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
