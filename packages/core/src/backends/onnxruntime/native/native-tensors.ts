import type { OrtApi } from "./ort-api.js";

/** An input or output of an open session. */
export interface NativeTensor {
  readonly name: string;
  /** ONNX's number of the element type; 0 for a value that is not a tensor. */
  readonly elementType: number;
  /** -1 for a size that is known only at run time. Empty for a scalar, and when the rank is unknown. */
  readonly dims: readonly number[];
  /** Names of the dimensions; empty for those without a name. */
  readonly dimNames: readonly string[];
}

/** Reads the inputs or the outputs of a session. */
export function nativeTensors(api: OrtApi, session: number, side: "input" | "output"): NativeTensor[] {
  const [count, nameOf, typeOf] =
    side === "input"
      ? [api.sessionGetInputCount, api.sessionGetInputName, api.sessionGetInputTypeInfo]
      : [api.sessionGetOutputCount, api.sessionGetOutputName, api.sessionGetOutputTypeInfo];
  const length = api.read((to) => count(session, to));
  return Array.from({ length }, (_, i) => {
    const text = api.read((to) => nameOf(session, i, api.allocator, to));
    const name = textAt(api, text);
    api.check(api.allocatorFree(api.allocator, text));
    const type = api.read((to) => typeOf(session, i, to));
    try {
      return { name, ...describeType(api, type) };
    } finally {
      api.releaseTypeInfo(type);
    }
  });
}

function describeType(api: OrtApi, type: number): Omit<NativeTensor, "name"> {
  const tensor = api.read((to) => api.castTypeInfoToTensorInfo(type, to));
  if (tensor === 0) return { elementType: 0, dims: [], dimNames: [] };
  const { elementType, dims } = typeAndShape(api, tensor);
  const names = new BigUint64Array(dims.length);
  api.check(api.getSymbolicDimensions(tensor, Number(api.koffi.address(names)), dims.length));
  return { elementType, dims, dimNames: Array.from(names, (at) => textAt(api, Number(at))) };
}

/** Reads the element type and the dimensions from ONNX Runtime's object about them. */
export function typeAndShape(api: OrtApi, info: number): { elementType: number; dims: number[] } {
  const elementType = api.read((to) => api.getTensorElementType(info, to));
  const rank = api.read((to) => api.getDimensionsCount(info, to));
  const dims = new BigInt64Array(rank);
  api.check(api.getDimensions(info, Number(api.koffi.address(dims)), rank));
  return { elementType, dims: Array.from(dims, Number) };
}

function textAt(api: OrtApi, at: number): string {
  return api.koffi.decode(BigInt(at), "char", -1) as string;
}
