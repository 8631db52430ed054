import { type DataType, elementByteSize, elementCount, type Shape, Tensor } from "@tritonjs/protocol";
import fc from "fast-check";

/** An FP32 tensor of these values. */
export function fp32(shape: Shape, values: readonly number[]): Tensor {
  return Tensor.fromElements("FP32", shape, Float32Array.from(values));
}

/** An FP32 tensor of ones. */
export function ones(...shape: number[]): Tensor {
  return Tensor.fromElements("FP32", shape, new Float32Array(elementCount(shape)).fill(1));
}

/** Tensors with random bits, made from bytes or from elements. */
export function tensors(datatype: DataType, shape: Shape): fc.Arbitrary<Tensor> {
  const count = elementCount(shape);
  if (datatype === "BYTES") {
    const elements = fc.array(fc.uint8Array({ maxLength: 12 }), { minLength: count, maxLength: count });
    return fc.tuple(elements, fc.boolean()).map(([list, serialized]) => {
      const tensor = Tensor.fromElements("BYTES", shape, list as Uint8Array<ArrayBuffer>[]);
      return serialized ? Tensor.fromBytes("BYTES", shape, tensor.bytes) : tensor;
    });
  }
  const length = count * elementByteSize(datatype);
  return fc.uint8Array({ minLength: length, maxLength: length }).map((bytes) => {
    // A copy starts at an address that suits every data type.
    return Tensor.fromBytes(datatype, shape, Uint8Array.from(bytes));
  });
}

/** The bits of a tensor, for comparing NaNs. */
export function bits(tensor: Tensor): { datatype: DataType; shape: Shape; hex: string } {
  const { datatype, shape, bytes } = tensor;
  return {
    datatype,
    shape,
    hex: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex"),
  };
}
