import { resolve } from "node:path";
import type { ModelDescription } from "@tritonjs/core/backend";
import {
  type DataType,
  type DescribedTensor,
  errorFor,
  fromOnnxType,
  TritonError,
  toOnnxType,
} from "@tritonjs/protocol";
import { readClassNames, withClassNames } from "./class-names.js";
import {
  bytesSource,
  externalLocations,
  fileSource,
  modelLabel,
  type OnnxDescription,
  type OnnxValue,
  readOnnx,
} from "./onnx-file.js";

export interface SessionTensor {
  readonly name: string;
  /** Undefined for a type without a data type in the protocol. */
  readonly dtype: DataType | undefined;
  /** -1 for any size. Empty for a scalar, and also when ONNX Runtime could not infer the rank. */
  readonly shape: readonly number[];
}

/** A model file: its tensors, and the lists of class names that come with it. */
export interface OnnxFile extends OnnxDescription {
  readonly classNames: readonly (readonly string[])[];
}

/** Inputs and outputs of an open session. Outputs have the shapes that ONNX Runtime inferred. */
export interface SessionTensors {
  readonly inputs: readonly SessionTensor[];
  readonly outputs: readonly SessionTensor[];
}

/**
 * Describes an ONNX model from its file and, where there is one, an open session. The session infers the shapes of
 * outputs, whatever the file declares. Only the file tells scalars from tensors of unknown rank.
 *
 * @param passesBfloat16 true for an engine that can pass tensors of bfloat16
 * @throws TritonError NOT_FOUND for a missing file, INVALID_ARG for a file that is not an ONNX model, UNSUPPORTED for
 * tensors that cannot pass through Node.
 */
export function describeOnnxModel(
  model: string | Uint8Array,
  session?: SessionTensors,
  file: OnnxFile = readOnnxFile(model),
  passesBfloat16 = false,
): ModelDescription {
  const label = modelLabel(model);
  return {
    inputs: file.inputs.map((value) => toSpec(value, "input", session?.inputs)),
    // A weight of a type that cannot pass is not an input for anyone.
    optionalInputs: file.optionalInputs
      .filter(({ elementType }) => elementType !== undefined && dataTypeOf(elementType) !== undefined)
      .map((value) => toSpec(value, "input", session?.inputs)),
    outputs: withClassNames(
      file.outputs.map((value) => toSpec(value, "output", session?.outputs)),
      file.classNames,
    ),
  };

  function toSpec(value: OnnxValue, kind: string, inSession: readonly SessionTensor[] = []): DescribedTensor {
    const { name, elementType, dims } = value;
    const inferred = inSession.find((one) => one.name === name);
    const dtype = elementType === undefined ? inferred?.dtype : dataTypeOf(elementType);
    if (dtype === undefined)
      throw unsupported(`cannot serve the ONNX model ${label}: it has ${kind} '${name}'`, elementType);
    const shape = inferred !== undefined && inferred.shape.length > 0 ? inferred.shape : dims;
    return shape === undefined ? { name, dtype, shape: [], rankUnknown: true } : { name, dtype, shape };
  }

  function dataTypeOf(elementType: number): DataType | undefined {
    const datatype = fromOnnxType(elementType);
    return datatype === "BF16" && !passesBfloat16 ? undefined : datatype;
  }
}

/** Whether the file leaves out the shape or the type of an output. A session would infer both. */
export function lacksShapes({ outputs }: OnnxDescription): boolean {
  return outputs.some(({ elementType, dims }) => elementType === undefined || (elementType !== 0 && !dims));
}

function unsupported(what: string, elementType: number | undefined): TritonError {
  const why =
    elementType === toOnnxType("BF16")
      ? "of type bfloat16, which onnxruntime-node cannot pass; cast it to float32 or float16 inside the model, or use the engine 'native'"
      : `of ${typeName(elementType)}, which the protocol cannot carry`;
  return errorFor("MODEL_NOT_SUPPORTED", `${what} ${why}`);
}

const OTHER_TYPES: Readonly<Record<number, string>> = {
  0: "a type that is not a tensor (sequence, map, optional or sparse)",
  14: "type complex64",
  15: "type complex128",
  17: "type float8e4m3fn",
  18: "type float8e4m3fnuz",
  19: "type float8e5m2",
  20: "type float8e5m2fnuz",
  21: "type uint4",
  22: "type int4",
  23: "type float4e2m1",
  24: "type float8e8m0",
  25: "type uint2",
  26: "type int2",
};

function typeName(elementType: number | undefined): string {
  if (elementType === undefined) return "a type that the file does not declare";
  return OTHER_TYPES[elementType] ?? `ONNX type ${elementType}`;
}

/** A model file of a repository, and the files that its tensors name. */
export interface FoundOnnxFile {
  readonly file: OnnxFile;
  readonly locations: ReadonlySet<string>;
}

/** Entry of a thread that reads a file. @throws TritonError as {@link readOnnxFile} */
export function read(path: unknown): FoundOnnxFile {
  const file = readOnnxFile(path as string);
  return { file, locations: externalLocations(path as string) };
}

/**
 * Reads inputs, outputs and class names of a model file.
 *
 * @throws TritonError NOT_FOUND for a missing file, INVALID_ARG for a file that is not an ONNX model
 */
export function readOnnxFile(model: string | Uint8Array): OnnxFile {
  const label = modelLabel(model);
  try {
    return { ...readOnnx(model), classNames: readClassNames(model) };
  } catch (error) {
    if (error instanceof RangeError) {
      const what = describeNotOnnx(model, error.message);
      throw errorFor("INVALID_MODEL", `cannot read the ONNX model ${label}: ${what}`, { cause: error });
    }
    const text = `cannot open the ONNX model ${label}: ${whyNotOpened(model, error)}`;
    throw errorFor("MODEL_FILES_NOT_FOUND", text, { cause: error });
  }
}

/** Why a file cannot be opened. A relative path is resolved, because it may be relative to another directory than meant. */
function whyNotOpened(model: string | Uint8Array, error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (typeof model === "string" && code === "ENOENT") return `there is no file '${resolve(model)}'`;
  if (typeof model === "string" && code === "EISDIR") return `'${resolve(model)}' is a directory`;
  return TritonError.from(error).message;
}

/** Bytes at the beginning of a file that tell what it is. */
const HEAD_BYTES = 512;

/** Files that are mistaken for a model: characters that such a file has at `at`, in lower case. */
const KINDS: readonly { readonly begins: readonly string[]; readonly at?: number; readonly what: string }[] =
  [
    {
      begins: ["version https://git-lfs.github.com"],
      what: "it is a Git LFS pointer instead of the model: fetch the model with `git lfs pull`",
    },
    {
      begins: ["<!doctype html", "<html", "<?xml"],
      what: "it is an HTML page, probably the answer to a failed download",
    },
    { begins: ["\u001f\u008b"], what: "it is compressed with gzip: unpack it first" },
    {
      begins: ["pk\u0003\u0004"],
      what: "it is a ZIP archive, perhaps a PyTorch checkpoint: export the model to ONNX",
    },
    { begins: ["\u0089hdf"], what: "it is an HDF5 file, perhaps of Keras: convert the model to ONNX" },
    { begins: ["tfl3"], at: 4, what: "it is a TensorFlow Lite model: convert the model to ONNX" },
    {
      begins: ["ortm"],
      at: 4,
      what: "it is a model in ORT format: give the .onnx file that it was made from",
    },
  ];

/**
 * Describes a file that is not an ONNX model by what it looks like.
 *
 * @param fault why it cannot be read as a model
 */
function describeNotOnnx(model: string | Uint8Array, fault: string): string {
  const source = typeof model === "string" ? fileSource(model) : bytesSource(model);
  try {
    if (source.length === 0) return "it is empty";
    const head = source.read(0, HEAD_BYTES).slice(0, HEAD_BYTES);
    const text = String.fromCharCode(...head);
    const lower = text.toLowerCase();
    const page = lower.trimStart();
    const known = KINDS.find(({ begins, at = 0 }) =>
      begins.some((start) => lower.startsWith(start, at) || (at === 0 && page.startsWith(start))),
    );
    if (known !== undefined) return known.what;
    if (/^[\s -~]+$/.test(text)) return `it is a text file that begins with '${firstLine(text)}'`;
    // A model begins with its field `ir_version`.
    const cut = head[0] === 0x08 && /^invalid (?:length|number)/.test(fault);
    return cut ? `it is cut off after ${source.length} bytes: ${fault}` : fault;
  } finally {
    source.close();
  }
}

const LINE_LENGTH = 40;

function firstLine(text: string): string {
  const line = text.trimStart().split(/\r?\n/, 1)[0]!;
  return line.length > LINE_LENGTH ? `${line.slice(0, LINE_LENGTH)}...` : line;
}
