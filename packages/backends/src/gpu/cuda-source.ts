import {
  type CudaMemory,
  type DataType,
  elementCount,
  errorFor,
  type Shape,
  Tensor,
  type TensorSource,
  TritonError,
  type TypedArray,
  typedArrayFor,
} from "@tritonjs/protocol";

/** Copies memory of a GPU to memory of the CPU. @throws Error with CUDA's text */
export type ReadCuda = (deviceId: number, into: Uint8Array, from: bigint) => void;

/** Elements of a tensor in memory of a GPU. They are copied to the CPU when they are read there. */
export class CudaSource implements TensorSource {
  #elements: TypedArray | undefined;

  private constructor(
    readonly cuda: CudaMemory,
    private readonly copy: ReadCuda,
    private readonly datatype: Exclude<DataType, "BYTES">,
    private readonly count: number,
  ) {}

  /** A tensor over memory of a GPU. */
  static tensor(
    datatype: Exclude<DataType, "BYTES">,
    shape: Shape,
    memory: CudaMemory,
    copy: ReadCuda,
  ): Tensor {
    return Tensor.fromSource(datatype, shape, new CudaSource(memory, copy, datatype, elementCount(shape)));
  }

  read(): TypedArray {
    if (this.#elements !== undefined) return this.#elements;
    const { deviceId } = this.cuda;
    const held = this.cuda.hold();
    if (held === undefined)
      throw errorFor("MODEL_STOPPED", `cannot read a tensor on GPU ${deviceId}: its memory is gone`);
    try {
      const elements = new (typedArrayFor(this.datatype))(this.count);
      this.copy(deviceId, new Uint8Array(elements.buffer), held.address);
      this.#elements = elements;
      return elements;
    } catch (cause) {
      const text = `cannot copy a tensor from GPU ${deviceId}: ${TritonError.from(cause).message}`;
      throw new TritonError("INTERNAL", text, { cause });
    } finally {
      held.release();
    }
  }

  async load(): Promise<void> {
    this.read();
  }
}
