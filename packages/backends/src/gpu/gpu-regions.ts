import type { GpuRegions, HoldGpuMemory, MappedGpuMemory } from "@tritonjs/core/extension";
import { type DataType, errorFor, type Shape, type Tensor, TritonError } from "@tritonjs/protocol";
import { type CudaRuntime, HANDLE_BYTES, loadCudaRuntime } from "./cuda-runtime.js";
import { CudaSource } from "./cuda-source.js";

/** CUDA shared memory of clients. */
export const gpuRegions: GpuRegions = {
  module: new URL("./gpu-regions.js", import.meta.url).href,
  isAvailable: () => loadCudaRuntime() !== undefined,
  open(name, { rawHandle, deviceId, byteSize }) {
    const runtime = loadCudaRuntime()!;
    const failed = `failed to register shared memory region '${name}'`;
    if (rawHandle.byteLength !== HANDLE_BYTES) {
      const text = `expected a raw handle of ${HANDLE_BYTES} bytes, got ${rawHandle.byteLength}`;
      throw errorFor("INVALID_REGION", `${failed}: ${text}`);
    }
    const size = BigInt.asUintN(64, BigInt(byteSize));
    let address: bigint;
    try {
      address = runtime.openHandle(deviceId, rawHandle);
    } catch (cause) {
      const text = `${failed}: failed to open CUDA IPC handle: ${TritonError.from(cause).message}`;
      throw errorFor("INVALID_REGION", text, { cause });
    }
    const most = runtime.sizeFrom(address) ?? Number.MAX_SAFE_INTEGER;
    if (size === 0n || size > BigInt(most)) {
      runtime.closeHandle(deviceId, address);
      throw errorFor("INVALID_REGION", `${failed}: invalid args`);
    }
    return new CudaObject(runtime, deviceId, address, Number(size), true);
  },
  attach(deviceId, address, byteSize) {
    const runtime = loadCudaRuntime();
    if (runtime === undefined) throw new Error("the thread cannot load CUDA's runtime library");
    return new CudaObject(runtime, deviceId, address, byteSize, false);
  },
};

/** Memory of a GPU that another process has made, as an object of a region. */
class CudaObject implements MappedGpuMemory {
  constructor(
    private readonly runtime: CudaRuntime,
    readonly deviceId: number,
    readonly address: bigint,
    private readonly size: number,
    /** Whether this object ends the mapping. */
    readonly owns: boolean,
  ) {}

  byteSize(): number {
    return this.size;
  }

  read(at: number, into: Uint8Array): boolean {
    if (into.byteLength > this.size - at) return false;
    this.#copy(into, this.address + BigInt(at), into.byteLength);
    return true;
  }

  write(at: number, bytes: Uint8Array): boolean {
    if (bytes.byteLength > this.size - at) return false;
    this.#copy(this.address + BigInt(at), bytes, bytes.byteLength);
    return true;
  }

  tensor(
    datatype: Exclude<DataType, "BYTES">,
    shape: Shape,
    at: number,
    hold: HoldGpuMemory,
  ): Tensor | undefined {
    if (!this.owns) return undefined;
    const { deviceId, runtime, address } = this;
    const start = address + BigInt(at);
    const memory = {
      deviceId,
      hold: () => {
        const held = hold();
        return held && { address: start, release: () => held.release() };
      },
    };
    return CudaSource.tensor(datatype, shape, memory, (device, into, from) =>
      runtime.copy(device, into, from, into.byteLength),
    );
  }

  close(): void {
    if (this.owns) this.runtime.closeHandle(this.deviceId, this.address);
  }

  #copy(to: Uint8Array | bigint, from: Uint8Array | bigint, byteSize: number): void {
    try {
      this.runtime.copy(this.deviceId, to, from, byteSize);
    } catch (cause) {
      const text = `cannot copy ${byteSize} bytes of CUDA shared memory: ${TritonError.from(cause).message}`;
      throw errorFor("INVALID_REGION", text, { cause });
    }
  }
}
