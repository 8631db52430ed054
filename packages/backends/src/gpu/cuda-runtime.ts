import { join } from "node:path";
import { type Koffi, type NativeFunction, type NativeLibrary, requireKoffi } from "@tritonjs/core/internal";

/** The functions used of CUDA's runtime library. {@link loadCudaRuntime} loads them through koffi. */
export interface CudaRuntime {
  /** Name or path of the library. */
  readonly file: string;
  /**
   * Maps memory of another process into this one.
   *
   * @param handle 64 bytes of a `cudaIpcMemHandle_t`
   * @returns its address on the GPU
   * @throws Error with CUDA's text
   */
  openHandle(deviceId: number, handle: Uint8Array): bigint;
  /**
   * The handle by which other processes map an allocation of this one.
   *
   * @param address its beginning
   * @throws Error with CUDA's text
   */
  handleOf(deviceId: number, address: bigint): Uint8Array;
  /** Ends the mapping. */
  closeHandle(deviceId: number, address: bigint): void;
  /** Size of the allocation from an address to its end; undefined if the driver's library cannot be asked. */
  sizeFrom(address: bigint): number | undefined;
  /** Copies between memory of the CPU and the GPU. @throws Error with CUDA's text */
  copy(deviceId: number, to: Uint8Array | bigint, from: Uint8Array | bigint, byteSize: number): void;
  /** Allocates memory of the CPU that GPUs can reach. @throws Error with CUDA's text */
  allocatePinned(byteSize: number): { readonly address: bigint; readonly memory: ArrayBuffer };
  freePinned(address: bigint): void;
  /** Allocates memory of a GPU, filled with zeros. @throws Error with CUDA's text */
  allocate(deviceId: number, byteSize: number): bigint;
  free(deviceId: number, address: bigint): void;
  /** Opens a queue of copies on a GPU. @throws Error with CUDA's text */
  openStream(deviceId: number): CudaStream;
}

/** Rows to copy. A pitch is the number of bytes from the beginning of a row to that of the next. */
export type CopiedRows = readonly [
  to: bigint,
  toPitch: number,
  from: bigint,
  fromPitch: number,
  width: number,
  height: number,
];

/** A queue of copies on one GPU. */
export interface CudaStream {
  /**
   * Queues a copy. A copy from or to memory that is not pinned may take as long as the copy itself.
   *
   * @throws Error with CUDA's text
   */
  copy(to: bigint, from: bigint, byteSize: number): void;
  /** Queues a copy on a thread of libuv's pool. @throws Error with CUDA's text */
  copyAsync(to: bigint, from: bigint, byteSize: number): Promise<void>;
  /** Queues a copy of rows that lie apart. @throws Error with CUDA's text */
  copyRows(...rows: CopiedRows): void;
  /** Queues a copy of rows on a thread of libuv's pool. @throws Error with CUDA's text */
  copyRowsAsync(...rows: CopiedRows): Promise<void>;
  /** Queues the filling of memory of the GPU with zeros. @throws Error with CUDA's text */
  clear(at: bigint, byteSize: number): void;
  /** Waits for all copies. @throws Error with CUDA's text */
  wait(): void;
  /** Waits for all copies on a thread of libuv's pool. @throws Error with CUDA's text */
  waitAsync(): Promise<void>;
  close(): void;
}

/** Size of a `cudaIpcMemHandle_t`. */
export const HANDLE_BYTES = 64;

/** Names of the library by platform, newer ones first. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  linux: [
    "libcudart.so.13",
    "libcudart.so.12",
    "libcudart.so.11.0",
    "libcudart.so",
    "/usr/local/cuda/lib64/libcudart.so",
  ],
  win32: ["cudart64_13.dll", "cudart64_12.dll", "cudart64_110.dll"],
};

const DRIVERS: Readonly<Record<string, string>> = { linux: "libcuda.so.1", win32: "nvcuda.dll" };

let loaded: CudaRuntime | "missing" | undefined;

/**
 * Loads CUDA's runtime library: of the folder that `CUDA_HOME` or `CUDA_PATH` names, or of this system. Undefined if
 * koffi, the library or a GPU is missing.
 */
export function loadCudaRuntime(): CudaRuntime | undefined {
  loaded ??= findRuntime() ?? "missing";
  return loaded === "missing" ? undefined : loaded;
}

function findRuntime(): CudaRuntime | undefined {
  let koffi: Koffi;
  try {
    koffi = requireKoffi();
  } catch {
    return undefined;
  }
  const names = NAMES[process.platform] ?? [];
  const home = process.env.CUDA_HOME || process.env.CUDA_PATH;
  const folder = process.platform === "win32" ? "bin" : "lib64";
  const ofHome = home === undefined ? [] : names.map((name) => join(home, folder, name));
  for (const name of [...ofHome, ...names]) {
    try {
      return bindCudaRuntime(koffi, name);
    } catch {
      // Another version may be installed.
    }
  }
  return undefined;
}

const COPY_BY_ADDRESSES = 4;
const OPEN_LAZILY = 1;
/** All contexts may use the memory, not only the current one. */
const PORTABLE = 1;
/** The stream does not wait for work of the default stream. */
const NON_BLOCKING = 1;

/**
 * Binds the functions of a library.
 *
 * @throws Error if it cannot be opened, lacks a function, or finds no GPU
 */
export function bindCudaRuntime(koffi: Koffi, file: string): CudaRuntime {
  const library = koffi.load(file);
  const handleType = koffi.struct({ reserved: koffi.array("uint8", HANDLE_BYTES) });
  const functionOf = (name: string, parameters: readonly (string | object)[]) =>
    library.func(name, "int", parameters) as NativeFunction<readonly unknown[], number>;
  const errorText = library.func("str cudaGetErrorString(int error)") as (error: number) => string;
  const check = (error: number): void => {
    if (error !== 0) throw new Error(`${errorText(error)} (CUDA error ${error})`);
  };
  const getDeviceCount = functionOf("cudaGetDeviceCount", ["uint64"]);
  const setDevice = functionOf("cudaSetDevice", ["int"]);
  const ipcOpen = functionOf("cudaIpcOpenMemHandle", ["uint64", handleType, "uint"]);
  const ipcHandle = functionOf("cudaIpcGetMemHandle", ["uint64", "uint64"]);
  const ipcClose = functionOf("cudaIpcCloseMemHandle", ["uint64"]);
  const memcpy = functionOf("cudaMemcpy", ["uint64", "uint64", "uint64", "int"]);
  const hostAlloc = functionOf("cudaHostAlloc", ["uint64", "uint64", "uint"]);
  const freeHost = functionOf("cudaFreeHost", ["uint64"]);
  const malloc = functionOf("cudaMalloc", ["uint64", "uint64"]);
  const memset = functionOf("cudaMemset", ["uint64", "int", "uint64"]);
  const freeDevice = functionOf("cudaFree", ["uint64"]);
  const createStream = functionOf("cudaStreamCreateWithFlags", ["uint64", "uint"]);
  const destroyStream = functionOf("cudaStreamDestroy", ["uint64"]);
  const memcpyAsync = functionOf("cudaMemcpyAsync", ["uint64", "uint64", "uint64", "int", "uint64"]);
  const memcpyRows = functionOf("cudaMemcpy2DAsync", [...Array<string>(6).fill("uint64"), "int", "uint64"]);
  const memsetAsync = functionOf("cudaMemsetAsync", ["uint64", "int", "uint64", "uint64"]);
  const waitForStream = functionOf("cudaStreamSynchronize", ["uint64"]);
  const word = new BigUint64Array(2);
  const at = () => koffi.address(word);
  word[0] = 0n;
  check(getDeviceCount(at()));
  if (word[0] === 0n) throw new Error("no GPU");
  const rangeOf = addressRange(koffi);
  const addressOf = (memory: Uint8Array | bigint) =>
    typeof memory === "bigint" ? memory : koffi.address(memory);
  return {
    file,
    openHandle(deviceId, handle) {
      check(setDevice(deviceId));
      word[0] = 0n;
      check(ipcOpen(at(), { reserved: [...handle] }, OPEN_LAZILY));
      return word[0]!;
    },
    handleOf(deviceId, address) {
      check(setDevice(deviceId));
      const handle = new Uint8Array(HANDLE_BYTES);
      check(ipcHandle(koffi.address(handle), address));
      return handle;
    },
    closeHandle(deviceId, address) {
      if (setDevice(deviceId) === 0) ipcClose(address);
    },
    sizeFrom(address) {
      if (rangeOf?.(at(), at() + 8n, address) !== 0) return undefined;
      return Number(word[0]! + word[1]! - address);
    },
    copy(deviceId, to, from, byteSize) {
      if (byteSize === 0) return;
      check(setDevice(deviceId));
      check(memcpy(addressOf(to), addressOf(from), byteSize, COPY_BY_ADDRESSES));
    },
    allocatePinned(byteSize) {
      word[0] = 0n;
      check(hostAlloc(at(), byteSize, PORTABLE));
      const address = word[0]!;
      return { address, memory: koffi.view(address, byteSize) };
    },
    freePinned: (address) => void freeHost(address),
    allocate(deviceId, byteSize) {
      check(setDevice(deviceId));
      word[0] = 0n;
      check(malloc(at(), byteSize));
      const address = word[0]!;
      check(memset(address, 0, byteSize));
      return address;
    },
    free(deviceId, address) {
      if (setDevice(deviceId) === 0) freeDevice(address);
    },
    openStream(deviceId) {
      check(setDevice(deviceId));
      word[0] = 0n;
      check(createStream(at(), NON_BLOCKING));
      const stream = word[0]!;
      const onThread = async (called: NativeFunction<readonly unknown[], number>, ...args: unknown[]) =>
        check(
          await new Promise<number>((resolve, reject) =>
            called.async(...args, (error, result) => (error === null ? resolve(result) : reject(error))),
          ),
        );
      return {
        copy: (to, from, byteSize) => check(memcpyAsync(to, from, byteSize, COPY_BY_ADDRESSES, stream)),
        copyAsync: (to, from, byteSize) =>
          onThread(memcpyAsync, to, from, byteSize, COPY_BY_ADDRESSES, stream),
        copyRows: (...rows) => check(memcpyRows(...rows, COPY_BY_ADDRESSES, stream)),
        copyRowsAsync: (...rows) => onThread(memcpyRows, ...rows, COPY_BY_ADDRESSES, stream),
        clear: (at, byteSize) => check(memsetAsync(at, 0, byteSize, stream)),
        wait: () => check(waitForStream(stream)),
        waitAsync: () => onThread(waitForStream, stream),
        close: () => void destroyStream(stream),
      };
    },
  };
}

/** The driver's function that tells where an allocation begins and how large it is. */
function addressRange(koffi: Koffi): ((base: bigint, size: bigint, at: bigint) => number) | undefined {
  try {
    const driver: NativeLibrary = koffi.load(DRIVERS[process.platform] ?? null);
    return driver.func("int cuMemGetAddressRange_v2(uint64_t base, uint64_t size, uint64_t at)");
  } catch {
    return undefined;
  }
}
