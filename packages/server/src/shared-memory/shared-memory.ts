import type { GpuRegionRequest, GpuRegions, MappedGpuMemory } from "@tritonjs/core/internal/server";
import {
  type DataType,
  elementByteSize,
  elementCount,
  errorFor,
  type Shape,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";
import { loadPosix, type Posix, type SharedObject, sharedObject } from "./shared-object.js";

/** Word of a region whose object is closed. */
const CLOSED = -1;
/** Set while a region is to be closed after its last user. The bits below it count the users. */
const AWAITS_END = 1 << 30;

/** The place of a tensor as a request gives it, in unsigned 64-bit numbers. */
export interface RequestedRange {
  readonly region: string;
  readonly offset: number | bigint;
  readonly byteSize: number | bigint;
}

/** A registered region as clients see it. */
export interface RegisteredSystemRegion {
  readonly name: string;
  /** Key of the shared memory object: `/my_region`. */
  readonly key: string;
  /** Start of the region in the object, in bytes. */
  readonly offset: number;
  readonly byteSize: number;
}

/**
 * A part of a shared memory object that a client has registered. One word of memory that all threads of the process
 * share counts the requests that use it. The thread that owns the region closes it. So no thread reads a descriptor that
 * is closed or belongs to another file by now.
 */
export class RegisteredRegion {
  /** @param index of its word */
  constructor(
    readonly status: RegisteredSystemRegion | RegisteredCudaRegion,
    private readonly object: SharedObject | MappedGpuMemory,
    private readonly words: Int32Array,
    private readonly index: number,
  ) {}

  /** The memory of a region on a GPU. */
  get gpuMemory(): MappedGpuMemory | undefined {
    return "tensor" in this.object ? this.object : undefined;
  }

  get #start(): number {
    return "offset" in this.status ? this.status.offset : 0;
  }

  /** Counts a request that uses the region. Returns false if the region is closed. */
  use(): boolean {
    for (;;) {
      const word = Atomics.load(this.words, this.index);
      if (word === CLOSED) return false;
      if (Atomics.compareExchange(this.words, this.index, word, word + 1) === word) return true;
    }
  }

  /** Returns true if the region was unregistered and this was its last request. */
  endUse(): boolean {
    return Atomics.sub(this.words, this.index, 1) - 1 === AWAITS_END;
  }

  /** True for a region that is to be closed and that no request uses. */
  get awaitsEnd(): boolean {
    return Atomics.load(this.words, this.index) === AWAITS_END;
  }

  /**
   * Copies a range of the region.
   *
   * @throws TritonError INVALID_ARG when the object has become too small, INTERNAL when there is no memory for the
   * copy.
   */
  read(offset: number, byteSize: number): Uint8Array {
    const bytes = this.#allocate(byteSize);
    if (!this.object.read(this.#start + offset, bytes)) throw this.#outOfRange();
    return bytes;
  }

  /** @throws TritonError INVALID_ARG when the object has become too small for the bytes, or has no memory for them. */
  write(offset: number, bytes: Uint8Array): void {
    if (!this.object.write(this.#start + offset, bytes)) throw this.#outOfRange();
  }

  /** Closes the object. Returns false while requests use the region. */
  close(): boolean {
    Atomics.or(this.words, this.index, AWAITS_END);
    if (Atomics.compareExchange(this.words, this.index, AWAITS_END, CLOSED) !== AWAITS_END) return false;
    this.object.close();
    return true;
  }

  #allocate(byteSize: number): Uint8Array {
    try {
      return new Uint8Array(Buffer.allocUnsafeSlow(byteSize).buffer);
    } catch (cause) {
      const what = `${byteSize} bytes from shared memory region '${this.status.name}'`;
      throw new TritonError("INTERNAL", `unable to allocate memory for ${what}`, { cause });
    }
  }

  #outOfRange(): TritonError {
    return errorFor(
      "INVALID_REGION",
      `Invalid offset + byte size for shared memory region: '${this.status.name}'`,
    );
  }
}

/** A region that a client wants to register, in unsigned 64-bit numbers. */
export interface SystemRegionRequest {
  /** Key of the shared memory object: `/my_region`. */
  readonly key: string;
  /** Start of the region in the object, in bytes: a multiple of the system's page size. */
  readonly offset: number | bigint;
  readonly byteSize: number | bigint;
}

/** A region of a GPU's memory as clients see it. */
export interface RegisteredCudaRegion {
  readonly name: string;
  readonly deviceId: number;
  readonly byteSize: number;
}

/** A region of a GPU's memory that a client wants to register, in unsigned numbers. */
export interface CudaRegionRequest extends Omit<GpuRegionRequest, "deviceId"> {
  readonly deviceId: number | bigint;
}

/** A registered region, as other threads of the process use it. */
export interface WatchedRegion {
  readonly status: RegisteredSystemRegion | RegisteredCudaRegion;
  /** Descriptor of the object, or address on the GPU. All threads share it. */
  readonly descriptor: number | bigint;
  /** Index of its count of users. */
  readonly index: number;
}

/** Limit on regions. Each keeps a descriptor open, and connections need descriptors too. */
export const MAX_REGIONS = 4096;
const MAX_UINT64 = 2n ** 64n - 1n;

/** Shared memory of clients, on the CPU and on GPUs. */
export class SharedMemory {
  readonly allowed: boolean;
  readonly users: Int32Array;
  /** Called when a region was registered or has ended. */
  onUpdate: (() => void) | undefined;
  readonly #regions = new Map<string, RegisteredRegion>();
  #watched: readonly WatchedRegion[] = [];
  readonly #posix: () => Promise<Posix>;
  readonly #maxRegions: number;
  readonly #gpus: GpuRegions | undefined;

  constructor(
    allowed: boolean,
    gpus?: GpuRegions,
    posix: () => Promise<Posix> = loadPosix,
    maxRegions = MAX_REGIONS,
  ) {
    this.#gpus = gpus;
    this.allowed = allowed;
    this.#posix = posix;
    this.#maxRegions = maxRegions;
    this.users = new Int32Array(new SharedArrayBuffer(allowed ? 4 * maxRegions : 0));
  }

  /** Module that maps memory of GPUs in other threads; undefined for a server without GPUs. */
  get gpuModule(): string | undefined {
    return this.#gpus?.module;
  }

  /** The registered regions. The list is replaced when they change. */
  get watched(): readonly WatchedRegion[] {
    return this.#watched;
  }

  /** @throws TritonError UNSUPPORTED unless clients may register and unregister regions. */
  checkAllowed(): void {
    if (this.allowed) return;
    throw errorFor(
      "SHARED_MEMORY_DISABLED",
      "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
    );
  }

  /** The region of a name, or all regions for an empty name, sorted by name. */
  systemStatus(name: string): RegisteredSystemRegion[] {
    return this.#statuses(name, "system").filter((status) => "key" in status);
  }

  /** The region of a GPU of a name, or all of them for an empty name, sorted by name. */
  cudaStatus(name: string): RegisteredCudaRegion[] {
    return this.#statuses(name, "cuda").filter((status) => "deviceId" in status);
  }

  #statuses(name: string, kind: "system" | "cuda") {
    if (name !== "") return [this.#named(name, kind).status];
    return [...this.#regions.values()].map(({ status }) => status).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * Registers a part of a shared memory object under a name.
   *
   * @throws TritonError UNSUPPORTED when clients may not register regions, or on Windows; UNAVAILABLE without the
   * package koffi; ALREADY_EXISTS for a name that is taken; INVALID_ARG for a reserved key and for a range outside the
   * object; INTERNAL for an object that cannot be opened.
   */
  async registerSystem(name: string, { key, offset, byteSize }: SystemRegionRequest): Promise<void> {
    this.checkAllowed();
    checkSharedMemoryKey(name, key);
    const posix = await this.#posix();
    this.#checkFree(name);
    const descriptor = posix.open(key);
    if (descriptor < 0) {
      throw new TritonError("INTERNAL", `Unable to open shared memory region: '${key}'`);
    }
    const object = sharedObject(posix, descriptor);
    try {
      checkBounds(name, BigInt(offset), BigInt(byteSize), BigInt(object.byteSize()), BigInt(posix.pageSize));
    } catch (error) {
      object.close();
      throw error;
    }
    const status = { name, key, offset: Number(offset), byteSize: Number(byteSize) };
    this.#add(status, object, descriptor);
  }

  /**
   * Registers memory of a GPU that a client has made, by the handle for other processes.
   *
   * @throws TritonError UNSUPPORTED when clients may not register regions; INVALID_ARG without a GPU, for a handle that
   * CUDA does not open, and for a size beyond the allocation; ALREADY_EXISTS for a name that is taken.
   */
  registerCuda(name: string, { rawHandle, deviceId, byteSize }: CudaRegionRequest): void {
    const gpus = this.gpuRegions(name);
    this.#checkFree(name);
    const device = Number(deviceId);
    const memory = gpus.open(name, { rawHandle, deviceId: device, byteSize });
    this.#add({ name, deviceId: device, byteSize: memory.byteSize() }, memory, memory.address);
  }

  /** @throws TritonError UNSUPPORTED when clients may not register regions, INVALID_ARG without a GPU */
  gpuRegions(name: string): GpuRegions {
    this.checkAllowed();
    const gpus = this.#gpus;
    if (gpus?.isAvailable()) return gpus;
    throw errorFor(
      "INVALID_REGION",
      `failed to register CUDA shared memory region: '${name}', GPUs not supported`,
    );
  }

  /** @throws TritonError ALREADY_EXISTS for a name that is taken, UNAVAILABLE when there are too many regions */
  #checkFree(name: string): void {
    if (this.#regions.has(name)) {
      throw errorFor("REGION_EXISTS", `shared memory region '${name}' already in manager`);
    }
    if (this.#regions.size >= this.#maxRegions) {
      throw errorFor(
        "REGION_LIMIT_REACHED",
        `cannot register shared memory region '${name}': expected at most ${this.#maxRegions} regions; unregister one first`,
      );
    }
  }

  #add(
    status: RegisteredSystemRegion | RegisteredCudaRegion,
    object: SharedObject | MappedGpuMemory,
    descriptor: number | bigint,
  ): void {
    const taken = new Set(this.#watched.map(({ index }) => index));
    let index = 0;
    while (taken.has(index)) index++;
    Atomics.store(this.users, index, 0);
    this.#regions.set(status.name, new RegisteredRegion(status, object, this.users, index));
    this.#watched = [...this.#watched, { status, descriptor, index }];
    this.onUpdate?.();
  }

  /**
   * Unregisters a region, or all regions for an empty name. An unknown name has no effect. A region that requests use
   * stays until the last of them is done.
   *
   * @throws TritonError UNSUPPORTED when clients may not unregister regions.
   */
  unregisterSystem(name: string): void {
    this.#unregisterNamed(name, "system");
  }

  /** Unregisters regions of GPUs as {@link unregisterSystem} does those of the CPU. */
  unregisterCuda(name: string): void {
    this.#unregisterNamed(name, "cuda");
  }

  #unregisterNamed(name: string, kind: "system" | "cuda"): void {
    this.checkAllowed();
    for (const region of [...this.#regions.values()]) {
      const { status } = region;
      const isMeant = name === "" || status.name === name;
      if (isMeant && kindOf(status) === kind) this.#unregister(region);
    }
  }

  /**
   * Holds the region of a tensor, which stays until {@link release}, even if it is unregistered before. Throws for an
   * unknown region and a range outside it.
   */
  hold(range: RequestedRange): RegionRange {
    let found = this.#find(range);
    // In a thread that does not own the region, it may be closed in between.
    while (!found.region.use()) found = this.#find(range);
    return found;
  }

  /** Ends what {@link hold} began. */
  release({ region }: RegionRange): void {
    if (region.endUse()) this.settle(region);
  }

  #find({ region: name, offset, byteSize }: RequestedRange): RegionRange {
    const region = this.region(name);
    if (region === undefined) {
      throw errorFor("REGION_NOT_FOUND", `Unable to find shared memory region: '${name}'`);
    }
    const size = BigInt(region.status.byteSize);
    const start = BigInt.asUintN(64, BigInt(offset));
    const length = BigInt.asUintN(64, BigInt(byteSize));
    if (start >= size) throw invalid(`Invalid offset for shared memory region: '${name}'`);
    if (length > MAX_UINT64 - start) {
      throw invalid(
        `Integer overflow detected: byte_size (${length}) + offset (${start}) exceeds maximum value ` +
          `(${MAX_UINT64}) for region '${name}'`,
      );
    }
    if (length === 0n || length > size - start) {
      throw invalid(`Invalid offset + byte size for shared memory region: '${name}'`);
    }
    return new RegionRange(region, Number(start), Number(length), this);
  }

  /** The region of a name, for requests. */
  protected region(name: string): RegisteredRegion | undefined {
    return this.#regions.get(name);
  }

  /** Removes an unregistered region after its last request. */
  settle(region: RegisteredRegion): void {
    this.#unregister(region);
  }

  /** Removes the unregistered regions that requests of other threads no longer use. */
  settleAll(): void {
    for (const region of [...this.#regions.values()]) if (region.awaitsEnd) this.#unregister(region);
  }

  close(): void {
    for (const region of [...this.#regions.values()]) this.#unregister(region);
  }

  #unregister(region: RegisteredRegion): void {
    if (!region.close()) return;
    const { name } = region.status;
    this.#regions.delete(name);
    this.#watched = this.#watched.filter(({ status }) => status.name !== name);
    this.onUpdate?.();
  }

  #named(name: string, kind: "system" | "cuda"): RegisteredRegion {
    const region = this.#regions.get(name);
    if (region === undefined) {
      throw errorFor("REGION_NOT_FOUND", `Unable to find ${kind} shared memory region: '${name}'`);
    }
    const found = kindOf(region.status);
    if (found === kind) return region;
    const [registered, asked] = found === "system" ? ["system", "CUDA"] : ["CUDA", "system"];
    throw errorFor(
      "REGION_NOT_FOUND",
      `The region named '${name}' is registered as ${registered} shared memory, not ${asked} shared memory`,
    );
  }
}

function kindOf(status: RegisteredSystemRegion | RegisteredCudaRegion): "system" | "cuda" {
  return "key" in status ? "system" : "cuda";
}

/** Checks that the region is inside the object and begins where memory can be mapped. */
function checkBounds(
  name: string,
  offset: bigint,
  byteSize: bigint,
  objectSize: bigint,
  pageSize: bigint,
): void {
  const failed = `failed to register shared memory region '${name}'`;
  const unmappable = invalid(`${failed}: unable to process address spaceInvalid argument`);
  if (byteSize > MAX_UINT64 - offset) throw unmappable;
  if (offset > objectSize || byteSize > objectSize - offset) throw invalid(`${failed}: invalid args`);
  if (byteSize === 0n || offset % pageSize !== 0n) throw unmappable;
}

function invalid(message: string): TritonError {
  return errorFor("INVALID_REGION", message);
}

/** Prefix of the keys that Triton's Python backend uses for its own objects. */
const RESERVED_PREFIX = "triton_python_backend_shm_region_";

/** Refuses a key that is reserved for the server. */
function checkSharedMemoryKey(region: string, key: string): void {
  const name = key.replace(/^\/+/, "");
  if (name.startsWith(RESERVED_PREFIX)) {
    throw errorFor(
      "INVALID_REGION",
      `cannot register shared memory region '${region}' with key '${key}' as the key contains the reserved ` +
        `prefix '${RESERVED_PREFIX}'`,
    );
  }
}

/** A range of a region that a request holds. */
export class RegionRange {
  constructor(
    readonly region: RegisteredRegion,
    private readonly offset: number,
    private readonly byteSize: number,
    private readonly regions: Pick<SharedMemory, "release">,
  ) {}

  /**
   * The input in the range: a copy of it, or for a model that takes tensors on a GPU the memory of the client itself.
   *
   * @throws TritonError INVALID_ARG when the client has shrunk the memory object
   */
  tensor(datatype: DataType, shape: Shape, takesSources: boolean): Tensor {
    const memory = takesSources ? this.region.gpuMemory : undefined;
    const isWhole = datatype !== "BYTES" && elementCount(shape) * elementByteSize(datatype) === this.byteSize;
    const held = { release: () => this.regions.release(this) };
    const tensor = isWhole
      ? memory?.tensor(datatype, shape, this.offset, () => (this.region.use() ? held : undefined))
      : undefined;
    return tensor ?? Tensor.fromBytes(datatype, shape, this.read());
  }

  /** Copies the range. Throws when the client has shrunk the memory object. */
  read(): Uint8Array {
    return this.region.read(this.offset, this.byteSize);
  }

  /** Writes an output. Throws when it is larger than the range, or the client has shrunk the memory object. */
  put(output: string, bytes: Uint8Array): void {
    if (bytes.byteLength > this.byteSize) {
      throw new TritonError(
        "INTERNAL",
        `shared memory size specified with the request for output '${output}' (${this.byteSize} bytes) should be ` +
          `at least ${bytes.byteLength} bytes to hold the results`,
      );
    }
    this.region.write(this.offset, bytes);
  }
}
