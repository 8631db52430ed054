import { errorFor, TritonError } from "@tritonjs/protocol";
import { boundedReader, messageRoot } from "../protobuf-schema.js";

/*
 * The messages of TensorFlow's files that are read here, with the fields that are needed of them. Numbers of 64 bits are
 * plain numbers: the contents of tensors, where it matters, come as bytes.
 */

interface ShapeMessage {
  readonly dim?: readonly { readonly size?: number }[];
  readonly unknownRank?: boolean;
}

export interface TfTensorMessage {
  readonly dtype?: number;
  readonly tensorShape?: ShapeMessage;
  /** The elements in the order of the processor; absent where they are in one of the lists. */
  readonly tensorContent?: Uint8Array;
  readonly halfVal?: readonly number[];
  readonly floatVal?: readonly number[];
  readonly doubleVal?: readonly number[];
  readonly intVal?: readonly number[];
  readonly stringVal?: readonly Uint8Array[];
  readonly int64Val?: readonly number[];
  readonly boolVal?: readonly boolean[];
  readonly uint32Val?: readonly number[];
  readonly uint64Val?: readonly number[];
}

interface FunctionName {
  readonly name?: string;
}

export interface TfAttributeMessage {
  readonly s?: Uint8Array;
  readonly i?: number;
  readonly f?: number;
  readonly b?: boolean;
  readonly type?: number;
  readonly shape?: ShapeMessage;
  readonly tensor?: TfTensorMessage;
  readonly func?: FunctionName;
  readonly list?: {
    readonly s?: readonly Uint8Array[];
    readonly i?: readonly number[];
    readonly f?: readonly number[];
    readonly b?: readonly boolean[];
    readonly type?: readonly number[];
    readonly shape?: readonly ShapeMessage[];
    readonly func?: readonly FunctionName[];
  };
}

export interface TfNodeMessage {
  readonly name: string;
  readonly op: string;
  readonly input?: readonly string[];
  readonly attr?: Readonly<Record<string, TfAttributeMessage>>;
}

interface ArgumentMessage {
  readonly name: string;
  readonly type?: number;
}

export interface TfFunctionMessage {
  readonly signature: {
    readonly name: string;
    readonly inputArg?: readonly ArgumentMessage[];
    readonly outputArg?: readonly ArgumentMessage[];
  };
  readonly nodeDef?: readonly TfNodeMessage[];
  /** Results by the names of the output arguments. */
  readonly ret?: Readonly<Record<string, string>>;
}

export interface TfGraphMessage {
  readonly node?: readonly TfNodeMessage[];
  readonly library?: { readonly function?: readonly TfFunctionMessage[] };
}

interface TensorInfoMessage {
  readonly name: string;
  readonly dtype?: number;
  readonly tensorShape?: ShapeMessage;
}

export interface SignatureMessage {
  readonly inputs?: Readonly<Record<string, TensorInfoMessage>>;
  readonly outputs?: Readonly<Record<string, TensorInfoMessage>>;
  readonly methodName?: string;
}

export interface MetaGraphMessage {
  readonly metaInfoDef?: { readonly tags?: readonly string[] };
  readonly graphDef?: TfGraphMessage;
  readonly saverDef?: { readonly restoreOpName?: string };
  readonly signatureDef?: Readonly<Record<string, SignatureMessage>>;
}

interface SavedModelMessage {
  readonly metaGraphs?: readonly MetaGraphMessage[];
}

interface BundleHeaderMessage {
  readonly numShards?: number;
  /** 1 for big-endian. */
  readonly endianness?: number;
}

export interface BundleEntryMessage {
  readonly dtype?: number;
  readonly shape?: ShapeMessage;
  readonly shardId?: number;
  readonly offset?: number;
  readonly size?: number;
  readonly slices?: readonly unknown[];
}

interface Messages {
  readonly SavedModel: SavedModelMessage;
  readonly Graph: TfGraphMessage;
  readonly BundleHeader: BundleHeaderMessage;
  readonly BundleEntry: BundleEntryMessage;
}

/** Fields as `name:number:type`, with `*` for lists and `%` for maps from strings. */
const SCHEMA: Readonly<Record<string, string>> = {
  SavedModel: "metaGraphs:2:MetaGraph*",
  MetaGraph: "metaInfoDef:1:MetaInfo graphDef:2:Graph saverDef:3:Saver signatureDef:5:Signature%",
  MetaInfo: "tags:4:string*",
  Saver: "restoreOpName:3:string",
  Signature: "inputs:1:TensorInfo% outputs:2:TensorInfo% methodName:3:string",
  TensorInfo: "name:1:string dtype:2:int32 tensorShape:3:Shape",
  Shape: "dim:2:Dim* unknownRank:3:bool",
  Dim: "size:1:int64",
  Graph: "node:1:Node* library:2:Library",
  Library: "function:1:Function*",
  Function: "signature:1:Operation nodeDef:3:Node* ret:4:string%",
  Operation: "name:1:string inputArg:2:Argument* outputArg:3:Argument*",
  Argument: "name:1:string type:3:int32",
  Node: "name:1:string op:2:string input:3:string* attr:5:Attribute%",
  Attribute:
    "list:1:List s:2:bytes i:3:int64 f:4:float b:5:bool type:6:int32 shape:7:Shape tensor:8:Tensor func:10:FunctionName",
  List: "s:2:bytes* i:3:int64* f:4:float* b:5:bool* type:6:int32* shape:7:Shape* func:9:FunctionName*",
  FunctionName: "name:1:string",
  Tensor:
    "dtype:1:int32 tensorShape:2:Shape tensorContent:4:bytes floatVal:5:float* doubleVal:6:double* intVal:7:int32* " +
    "stringVal:8:bytes* int64Val:10:int64* boolVal:11:bool* halfVal:13:int32* uint32Val:16:uint32* uint64Val:17:uint64*",
  BundleHeader: "numShards:1:int32 endianness:2:int32",
  BundleEntry: "dtype:1:int32 shape:2:Shape shardId:3:int32 offset:4:int64 size:5:int64 slices:7:Slice*",
  Slice: "",
};

/** None: the messages are only read, and lists of numbers are read in either form. */
const PACKED = /^$/;

let root: ReturnType<typeof messageRoot> | undefined;

/**
 * Decodes a message.
 *
 * @param what the file in texts
 * @throws TritonError INVALID_ARG for bytes that are cut or another message.
 */
export function decodeGraphMessage<K extends keyof Messages>(
  name: K,
  bytes: Uint8Array,
  what: string,
): Messages[K] {
  root ??= messageRoot("tensorflow", SCHEMA, PACKED);
  try {
    const type = root.lookupType(`tensorflow.${name}`);
    // A plain object: the message itself has the defaults of absent fields.
    return type.toObject(type.decode(boundedReader(bytes, what)), {
      longs: Number,
    }) as Messages[K];
  } catch (cause) {
    if (TritonError.is(cause)) throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw errorFor(
      "INVALID_MODEL",
      `cannot read ${what}: expected a protobuf message '${name}', got ${bytes.byteLength} bytes that end early or ` +
        `are another one (${why})`,
      { cause },
    );
  }
}
