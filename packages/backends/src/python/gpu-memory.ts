import { type DataType, type HeldCudaMemory, type Shape, Tensor, TritonError } from "@tritonjs/protocol";
import type { CudaPools, ExportedMemory } from "../gpu/cuda-pools.js";
import type { CudaStream } from "../gpu/cuda-runtime.js";
import { CudaSource } from "../gpu/cuda-source.js";

/** A tensor of a frame that is in memory of a GPU. The process maps the memory by its handle. */
export interface GpuTensor {
  readonly id: number;
  readonly device: number;
  /** Base64 of the `cudaIpcMemHandle_t`. */
  readonly handle: string;
  /** Bytes of the tensor, from the beginning of the memory. */
  readonly size: number;
}

interface GpuBuffer {
  readonly id: number;
  readonly device: number;
  readonly memory: ExportedMemory;
  /** Users of a tensor over it. */
  holds: number;
  isGone: boolean;
}

/**
 * Memory of GPUs that the process of an instance of a Python model shares with this one. This process allocates all of it, so nothing
 * is lost when the process dies:
 *
 * ```
 * tensor on a GPU --copy on the GPU--> buffer: lent to the process until its last array over it is gone
 * buffer: lent to the process, which copies its tensor into it on the GPU --> a tensor over the buffer
 * ```
 *
 * A buffer is used again for later tensors, and is freed with the instance: the process keeps it mapped until it ends.
 */
export class PythonGpuMemory {
  /** Tensors that were passed without a copy to the CPU: to the process, and from it. */
  tensorsIn = 0;
  tensorsOut = 0;
  readonly #free: GpuBuffer[] = [];
  /** Buffers that the process has. */
  readonly #lent = new Map<number, GpuBuffer>();
  /** Buffers of tensors that stay on the GPU. */
  readonly #kept = new Set<GpuBuffer>();
  readonly #streams = new Map<number, CudaStream | undefined>();
  readonly #collected = new FinalizationRegistry<GpuBuffer>((buffer) => {
    if (this.#kept.delete(buffer)) this.#giveBack(buffer);
  });
  #count = 0;
  #isClosed = false;

  constructor(private readonly pools: CudaPools) {}

  /** Copies a tensor on a GPU to a buffer that the process gets. Undefined for any other tensor, and without room. */
  lend(tensor: Tensor): GpuTensor | undefined {
    const cuda = tensor.source?.cuda;
    if (cuda === undefined || tensor.byteLength === 0) return undefined;
    const stream = this.#stream(cuda.deviceId);
    const held = stream && cuda.hold();
    if (held === undefined) return undefined;
    try {
      const lent = this.allocate(cuda.deviceId, tensor.byteLength);
      if (lent === undefined) return undefined;
      const { memory } = this.#lent.get(lent.id)!;
      try {
        stream!.copy(memory.address, held.address, tensor.byteLength);
        stream!.wait();
      } catch (error) {
        this.takeBack(lent.id);
        throw error;
      }
      this.tensorsIn++;
      return lent;
    } catch (cause) {
      const text = `cannot copy a tensor on GPU ${cuda.deviceId}: ${TritonError.from(cause).message}`;
      throw new TritonError("INTERNAL", text, { cause });
    } finally {
      held.release();
    }
  }

  /** Lends a buffer to the process. Undefined if the pool has no room. */
  allocate(device: number, size: number): GpuTensor | undefined {
    if (this.#isClosed) return undefined;
    const fits = (buffer: GpuBuffer) => buffer.device === device && buffer.memory.byteSize >= size;
    // The smallest that fits.
    const free = this.#free.filter(fits).sort((a, b) => a.memory.byteSize - b.memory.byteSize)[0];
    let buffer = free;
    if (buffer === undefined) {
      const memory = this.pools.exported(device, size);
      if (memory === undefined) return undefined;
      buffer = { id: ++this.#count, device, memory, holds: 0, isGone: false };
    } else this.#free.splice(this.#free.indexOf(buffer), 1);
    this.#lent.set(buffer.id, buffer);
    const handle = Buffer.from(buffer.memory.handle).toString("base64");
    return { id: buffer.id, device, handle, size };
  }

  /** Takes back a buffer that the process no longer uses. Another number than that of a lent buffer has no effect. */
  takeBack(id: number): void {
    const buffer = this.#lent.get(id);
    if (buffer === undefined) return;
    this.#lent.delete(id);
    this.#giveBack(buffer);
  }

  /** Takes back the buffers of tensors that nothing reads. */
  takeBackAll(tensors: readonly { readonly gpu?: GpuTensor | number }[] = []): void {
    for (const { gpu } of tensors) if (typeof gpu === "number") this.takeBack(gpu);
  }

  /**
   * The tensor that the process has written to a buffer.
   *
   * @param stays whether it may stay on the GPU, because a model reads it there
   * @throws Error for a buffer that the process does not have, or that is too small
   */
  take(
    id: number,
    datatype: Exclude<DataType, "BYTES">,
    shape: Shape,
    byteSize: number,
    stays: boolean,
  ): Tensor {
    const buffer = this.#lent.get(id);
    if (buffer === undefined || byteSize > buffer.memory.byteSize) {
      throw new Error("the tensor is not in memory of the GPU");
    }
    this.#lent.delete(id);
    const { device, memory } = buffer;
    const held: HeldCudaMemory = {
      address: memory.address,
      release: () => {
        if (--buffer.holds === 0 && buffer.isGone) memory.free();
      },
    };
    const hold = () => {
      if (buffer.isGone) return undefined;
      buffer.holds++;
      return held;
    };
    const cuda = { deviceId: device, hold };
    const tensor = CudaSource.tensor(datatype, shape, cuda, (...copy) => this.pools.read(...copy));
    if (stays) {
      this.tensorsOut++;
      this.#kept.add(buffer);
      this.#collected.register(tensor.source!, buffer);
      return tensor;
    }
    try {
      return Tensor.fromElements(datatype, shape, tensor.elements);
    } finally {
      this.#giveBack(buffer);
    }
  }

  /** Takes back what the process had, which has ended. The next process maps the buffers anew. */
  processEnded(): void {
    for (const buffer of this.#lent.values()) this.#giveBack(buffer);
    this.#lent.clear();
  }

  /** Frees the memory, after the process has ended. Tensors over it cannot be read any more. */
  close(): void {
    this.processEnded();
    this.#isClosed = true;
    for (const { memory } of this.#free) memory.free();
    this.#free.length = 0;
    for (const buffer of this.#kept) {
      buffer.isGone = true;
      if (buffer.holds === 0) buffer.memory.free();
    }
    this.#kept.clear();
    for (const stream of this.#streams.values()) stream?.close();
    this.#streams.clear();
  }

  #giveBack(buffer: GpuBuffer): void {
    this.#free.push(buffer);
  }

  #stream(device: number): CudaStream | undefined {
    if (!this.#streams.has(device)) this.#streams.set(device, this.pools.stream(device));
    return this.#streams.get(device);
  }
}
