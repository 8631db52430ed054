import type { Log } from "@tritonjs/core/extension";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { type CudaRuntime, type CudaStream, loadCudaRuntime } from "./cuda-runtime.js";

/** Limits of the pools, as Triton has them. */
export interface CudaPoolLimits {
  /**
   * Largest amount of pinned memory in bytes, in which batches for GPUs are gathered and their outputs arrive. Memory is
   * pinned when a model needs it. Beyond the limit, and with 0, tensors use memory that is not pinned. @default 256 MiB
   */
  readonly pinnedMemoryPoolByteSize?: number;
  /**
   * Largest amount of memory in bytes for inputs and outputs on a GPU, by the number of the GPU. Beyond the limit, and
   * with 0, ONNX Runtime allocates it for each batch. @default 64 MiB on each GPU
   */
  readonly cudaMemoryPoolByteSize?: Readonly<Record<number, number>>;
}

const PINNED_BYTES = 256 * 1024 * 1024;
const DEVICE_BYTES = 64 * 1024 * 1024;

/** Memory of a pool. */
export interface PoolMemory {
  readonly address: bigint;
  readonly byteSize: number;
  /** Gives the memory back. It must not be used afterwards. */
  free(): void;
}

/** Memory of a GPU that other processes may map. */
export interface ExportedMemory extends PoolMemory {
  /** Bytes of its `cudaIpcMemHandle_t`. */
  readonly handle: Uint8Array;
}

/** Allocations of other sizes share pages with others, which CUDA would export as well. */
const EXPORTED_BYTES = 2 * 1024 * 1024;

/** Memory of the CPU that a GPU reads and writes by itself. */
export interface PinnedMemory extends PoolMemory {
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/**
 * Memory of a server for tensors on their way to GPUs and back: pinned memory of the CPU, and memory of each GPU. Both
 * are bounded. CUDA's library is loaded, and memory allocated, when a model first asks.
 */
export class CudaPools {
  readonly #pinned: Pool;
  readonly #devices = new Map<number, Pool>();
  #runtime: CudaRuntime | "unknown" | undefined = "unknown";

  /** @param log gets one message for each pool that is full */
  constructor(
    private readonly limits: CudaPoolLimits,
    private readonly log: Pick<Log, "warning">,
    private readonly load: () => CudaRuntime | undefined = loadCudaRuntime,
  ) {
    const { pinnedMemoryPoolByteSize: pinned = PINNED_BYTES, cudaMemoryPoolByteSize: devices = {} } = limits;
    for (const [name, value] of [
      ["pinnedMemoryPoolByteSize", pinned],
      ...Object.entries(devices).map(([id, size]) => [`cudaMemoryPoolByteSize of GPU ${id}`, size] as const),
    ] as const) {
      if (Number.isSafeInteger(value) && value >= 0) continue;
      const text = `${name}: expected a number of bytes of 0 or more, got ${String(value)}`;
      throw errorFor("INVALID_CONFIG", text);
    }
    this.#pinned = new Pool(pinned, "pinned memory", "--pinned-memory-pool-byte-size", log);
  }

  /** Bytes of the pool of pinned memory and of its part in use; 0 until a model on a GPU asks, and without one. */
  get pinnedUsage(): { readonly total: number; readonly used: number } {
    const total = this.#runtime === "unknown" || this.#runtime === undefined ? 0 : this.#pinned.limit;
    return { total, used: this.#pinned.used };
  }

  /** Bytes of the pools of GPUs that a model has used, and of their parts in use. */
  get deviceUsage(): readonly { readonly id: number; readonly total: number; readonly used: number }[] {
    return [...this.#devices].map(([id, { limit: total, used }]) => ({ id, total, used }));
  }

  /** Pinned memory of a size; undefined without CUDA, and if the pool is full. */
  pinned(byteSize: number): PinnedMemory | undefined {
    const runtime = this.#cuda();
    return (
      runtime &&
      this.#pinned.take(byteSize, () => {
        const { address, memory } = runtime.allocatePinned(byteSize);
        return {
          address,
          byteSize,
          bytes: new Uint8Array(memory),
          free: () => runtime.freePinned(address),
        };
      })
    );
  }

  /** Memory of a GPU, filled with zeros; undefined without CUDA, and if its pool is full. */
  device(deviceId: number, byteSize: number): PoolMemory | undefined {
    const runtime = this.#cuda();
    if (runtime === undefined) return undefined;
    let pool = this.#devices.get(deviceId);
    if (pool === undefined) {
      const limit = this.limits.cudaMemoryPoolByteSize?.[deviceId] ?? DEVICE_BYTES;
      pool = new Pool(limit, `memory of GPU ${deviceId}`, "--cuda-memory-pool-byte-size", this.log);
      this.#devices.set(deviceId, pool);
    }
    return pool.take(byteSize, () => {
      const address = runtime.allocate(deviceId, byteSize);
      return { address, byteSize, free: () => runtime.free(deviceId, address) };
    });
  }

  /** File of CUDA's runtime library; undefined without CUDA. */
  get libraryFile(): string | undefined {
    return this.#cuda()?.file;
  }

  /** Memory of a GPU of at least this size that other processes may map; undefined without CUDA, or if the pool is full. */
  exported(deviceId: number, byteSize: number): ExportedMemory | undefined {
    const memory = this.device(deviceId, Math.ceil(byteSize / EXPORTED_BYTES) * EXPORTED_BYTES);
    if (memory === undefined) return undefined;
    try {
      return { ...memory, handle: this.#cuda()!.handleOf(deviceId, memory.address) };
    } catch (error) {
      memory.free();
      this.log.warning(
        `cannot share memory of GPU ${deviceId} with processes: ${TritonError.from(error).message}`,
      );
      return undefined;
    }
  }

  /** Copies memory of a GPU to memory of the CPU. @throws Error with CUDA's text */
  read(deviceId: number, into: Uint8Array, from: bigint): void {
    this.#cuda()!.copy(deviceId, into, from, into.byteLength);
  }

  /** A queue of copies to a GPU and from it; undefined without CUDA, and if CUDA refuses. */
  stream(deviceId: number): CudaStream | undefined {
    try {
      return this.#cuda()?.openStream(deviceId);
    } catch (error) {
      this.log.warning(`cannot copy tensors to GPU ${deviceId}: ${TritonError.from(error).message}`);
      return undefined;
    }
  }

  #cuda(): CudaRuntime | undefined {
    if (this.#runtime === "unknown") this.#runtime = this.load();
    return this.#runtime;
  }
}

/** A bounded amount of memory of one kind. */
class Pool {
  used = 0;
  #told = false;

  constructor(
    readonly limit: number,
    private readonly what: string,
    private readonly option: string,
    private readonly log: Pick<Log, "warning">,
  ) {}

  take<Memory extends PoolMemory>(byteSize: number, allocate: () => Memory): Memory | undefined {
    let memory: Memory;
    if (byteSize > this.limit - this.used) {
      this.#tell(`${this.used} of ${this.limit} bytes are in use`);
      return undefined;
    }
    try {
      memory = allocate();
    } catch (error) {
      this.#tell(TritonError.from(error).message);
      return undefined;
    }
    this.used += byteSize;
    let isFree = false;
    const { free } = memory;
    return {
      ...memory,
      free: () => {
        if (isFree) return;
        isFree = true;
        this.used -= byteSize;
        free();
      },
    };
  }

  /** Logs once that the pool is full: from then on the others wait longer for their copies, and nothing fails. */
  #tell(why: string): void {
    if (this.#told || this.limit === 0) return;
    this.#told = true;
    const text = `the pool of ${this.what} has no room (${why}): further tensors use other memory; raise ${this.option}`;
    this.log.warning(text);
  }
}
