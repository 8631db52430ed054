import { errorFor, TritonError } from "@tritonjs/protocol";
import protobuf from "protobufjs/light.js";
import { BoundedReader, messageRoot } from "../protobuf-schema.js";

/** A 64-bit integer of a message: a number where that is exact, else a bigint. */
export type Int64 = number | bigint;

/** A key and its value, as external data and metadata have them. */
export interface EntryMessage {
  key: string;
  value: string;
}

export interface TensorMessage {
  dims: Int64[];
  /** A number of {@link ELEMENT}. */
  dataType: number;
  name: string;
  rawData?: Uint8Array;
  floatData: number[];
  int32Data: number[];
  int64Data: Int64[];
  doubleData: number[];
  uint64Data: Int64[];
  stringData: Uint8Array[];
  externalData: EntryMessage[];
  /** 1 if the elements are in another file. */
  dataLocation?: number;
}

export interface AttributeMessage {
  name: string;
  /** A number of {@link ATTRIBUTE}. */
  type: number;
  f?: number;
  i?: Int64;
  s?: Uint8Array;
  t?: TensorMessage;
  g?: GraphMessage;
  floats: number[];
  ints: Int64[];
  strings: Uint8Array[];
  tensors: TensorMessage[];
  graphs: GraphMessage[];
}

export interface NodeMessage {
  input: string[];
  output: string[];
  name?: string;
  opType: string;
  domain?: string;
  attribute: AttributeMessage[];
  docString?: string;
}

export interface DimMessage {
  dimValue?: Int64;
  dimParam?: string;
}

export interface TensorTypeMessage {
  elemType: number;
  /** Absent if the file leaves the rank open. */
  shape?: { dim: DimMessage[] };
}

export interface ValueMessage {
  name: string;
  type?: { tensorType?: TensorTypeMessage };
}

export interface GraphMessage {
  node: NodeMessage[];
  name: string;
  initializer: TensorMessage[];
  input: ValueMessage[];
  output: ValueMessage[];
  valueInfo: ValueMessage[];
  docString?: string;
}

export interface OperatorSetMessage {
  domain?: string;
  version: Int64;
}

export interface ModelMessage {
  irVersion: Int64;
  opsetImport: OperatorSetMessage[];
  producerName?: string;
  producerVersion?: string;
  docString?: string;
  graph: GraphMessage;
  metadataProps: EntryMessage[];
  /** Operators that the model defines itself. */
  functions: FunctionMessage[];
}

export interface FunctionMessage {
  name: string;
  domain?: string;
  node: NodeMessage[];
}

/** The element types of ONNX's `TensorProto.DataType` that the rewriting knows. */
export const ELEMENT = {
  FLOAT: 1,
  UINT8: 2,
  INT8: 3,
  UINT16: 4,
  INT16: 5,
  INT32: 6,
  INT64: 7,
  STRING: 8,
  BOOL: 9,
  FLOAT16: 10,
  DOUBLE: 11,
  UINT32: 12,
  UINT64: 13,
  BFLOAT16: 16,
  UINT4: 21,
  INT4: 22,
} as const;

/** The types of ONNX's `AttributeProto.AttributeType`. */
export const ATTRIBUTE = {
  FLOAT: 1,
  INT: 2,
  STRING: 3,
  TENSOR: 4,
  GRAPH: 5,
  FLOATS: 6,
  INTS: 7,
  STRINGS: 8,
  TENSORS: 9,
  GRAPHS: 10,
} as const;

/**
 * The fields of onnx.proto that the rewriting reads, as `name:number:type`, with `*` for lists. protobufjs keeps the
 * other fields as bytes and writes them back.
 */
const SCHEMA: Readonly<Record<string, string>> = {
  Model:
    "irVersion:1:int64 producerName:2:string producerVersion:3:string docString:6:string graph:7:Graph " +
    "opsetImport:8:OperatorSet* metadataProps:14:Entry* functions:25:Function*",
  OperatorSet: "domain:1:string version:2:int64",
  Entry: "key:1:string value:2:string",
  Function: "name:1:string node:7:Node* domain:10:string",
  Graph:
    "node:1:Node* name:2:string initializer:5:Tensor* docString:10:string input:11:Value* output:12:Value* " +
    "valueInfo:13:Value*",
  Node:
    "input:1:string* output:2:string* name:3:string opType:4:string attribute:5:Attribute* docString:6:string " +
    "domain:7:string",
  Attribute:
    "name:1:string f:2:float i:3:int64 s:4:bytes t:5:Tensor g:6:Graph floats:7:float* ints:8:int64* strings:9:bytes* " +
    "tensors:10:Tensor* graphs:11:Graph* type:20:int32",
  Tensor:
    "dims:1:int64* dataType:2:int32 floatData:4:float* int32Data:5:int32* stringData:6:bytes* int64Data:7:int64* " +
    "name:8:string rawData:9:bytes doubleData:10:double* uint64Data:11:uint64* externalData:13:Entry* " +
    "dataLocation:14:int32",
  Value: "name:1:string type:2:Type",
  Type: "tensorType:1:TensorType",
  TensorType: "elemType:1:int32 shape:2:Shape",
  Shape: "dim:1:Dim*",
  Dim: "dimValue:1:int64 dimParam:2:string",
};

/** Lists that onnx.proto declares as packed. */
const PACKED = /^(floatData|int32Data|int64Data|doubleData|uint64Data)$/;

const modelType = (): protobuf.Type => messageRoot("onnx", SCHEMA, PACKED).lookupType("onnx.Model");

let type: protobuf.Type | undefined;

/**
 * Decodes an ONNX model. Elements of tensors stay views of `bytes`.
 *
 * @param label the model in texts
 * @throws TritonError INVALID_ARG for bytes that are cut or are not an ONNX model
 */
export function decodeModel(bytes: Uint8Array, label: string): ModelMessage {
  type ??= modelType();
  const fail = (why: string, cause?: unknown) =>
    errorFor("INVALID_MODEL", `cannot read the ONNX model ${label}: ${why}`, { cause });
  let model: ModelMessage & { graph?: GraphMessage };
  try {
    model = type.decode(
      new ExactReader(bytes, `the ONNX model ${label}`) as unknown as protobuf.Reader,
    ) as never;
  } catch (error) {
    if (TritonError.is(error)) throw error;
    const text = error instanceof Error ? error.message : String(error);
    throw fail(
      `expected a whole protobuf message, got ${bytes.byteLength} bytes that end early or are not one (${text})`,
      error,
    );
  }
  if (!model.graph) throw fail("expected a model with a graph, got none");
  return model;
}

/** Encodes an ONNX model. */
export function encodeModel(model: ModelMessage): Uint8Array {
  type ??= modelType();
  return type.encode(model as never, new ExactWriter() as unknown as protobuf.Writer).finish();
}

/** Reads 64-bit integers exactly, without objects for those that a number holds. */
class ExactReader extends BoundedReader {
  /** Fields that {@link SCHEMA} does not name are kept, so that they can be written back. */
  readonly discardUnknown = false;

  int64(): Int64 {
    return small(BigInt.asIntN(64, this.#varint()));
  }

  uint64(): Int64 {
    return small(BigInt.asUintN(64, this.#varint()));
  }

  #varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      if (this.pos >= this.len) break;
      const byte = this.buf[this.pos++]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new RangeError(`invalid number at byte ${this.pos}`);
  }
}

const small = (value: bigint): Int64 => {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
};

const BaseWriter = protobuf.BufferWriter as unknown as new () => {
  uint64(value: Wide): unknown;
  uint64s(values: Wide[]): unknown;
};

interface Halves {
  readonly low: number;
  readonly high: number;
}

type Wide = Int64 | Halves;

/** Writes 64-bit integers that are numbers or bigints. */
class ExactWriter extends BaseWriter {
  override uint64(value: Wide): unknown {
    return super.uint64(halves(value));
  }

  override uint64s(values: Wide[]): unknown {
    return super.uint64s(values.map(halves));
  }

  int64(value: Int64): unknown {
    return this.uint64(value);
  }

  int64s(values: Int64[]): unknown {
    return this.uint64s(values);
  }
}

/** Both halves as 64 bits in two's complement. */
function halves(value: Wide): Halves {
  if (typeof value === "object") return value;
  const wide = BigInt(value);
  return { low: Number(BigInt.asIntN(32, wide)), high: Number(BigInt.asIntN(32, wide >> 32n)) };
}
