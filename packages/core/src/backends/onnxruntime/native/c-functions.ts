import type { NativeFunction } from "../../../koffi.js";

/** Types of parameters: `at` is an address, `size` a size or an integer of 64 bits, `text` a NUL-terminated string. */
type Parameter = "at" | "size" | "int" | "text";

/** Results: `status` is the address of an error or 0. */
type Result = "status" | "text" | "int" | "none";

type Signature = readonly [index: number, result: Result, parameters: readonly Parameter[]];

/**
 * The version of ONNX Runtime's C interface that the table below describes. A library of this version or newer has all
 * of these functions at these places: newer versions only append.
 */
export const API_VERSION = 16;

/** The functions in use: place in the structure `OrtApi`, result and parameters. */
export const C_FUNCTIONS = {
  getErrorMessage: [2, "text", ["at"]],
  createEnv: [3, "status", ["int", "text", "at"]],
  createSession: [7, "status", ["at", "at", "at", "at"]],
  createSessionFromArray: [8, "status", ["at", "at", "size", "at", "at"]],
  run: [9, "status", ["at", "at", "at", "at", "size", "at", "size", "at"]],
  createSessionOptions: [10, "status", ["at"]],
  setSessionExecutionMode: [13, "status", ["at", "int"]],
  disableMemPattern: [17, "status", ["at"]],
  disableCpuMemArena: [19, "status", ["at"]],
  setSessionLogSeverityLevel: [22, "status", ["at", "int"]],
  setSessionGraphOptimizationLevel: [23, "status", ["at", "int"]],
  setIntraOpNumThreads: [24, "status", ["at", "int"]],
  setInterOpNumThreads: [25, "status", ["at", "int"]],
  sessionGetInputCount: [30, "status", ["at", "at"]],
  sessionGetOutputCount: [31, "status", ["at", "at"]],
  sessionGetInputTypeInfo: [33, "status", ["at", "size", "at"]],
  sessionGetOutputTypeInfo: [34, "status", ["at", "size", "at"]],
  sessionGetInputName: [36, "status", ["at", "size", "at", "at"]],
  sessionGetOutputName: [37, "status", ["at", "size", "at", "at"]],
  createRunOptions: [39, "status", ["at"]],
  runOptionsSetTerminate: [46, "status", ["at"]],
  runOptionsUnsetTerminate: [47, "status", ["at"]],
  createTensorAsOrtValue: [48, "status", ["at", "at", "size", "int", "at"]],
  createTensorWithDataAsOrtValue: [49, "status", ["at", "at", "size", "at", "size", "int", "at"]],
  getTensorMutableData: [51, "status", ["at", "at"]],
  fillStringTensor: [52, "status", ["at", "at", "size"]],
  getStringTensorDataLength: [53, "status", ["at", "at"]],
  getStringTensorContent: [54, "status", ["at", "at", "size", "at", "size"]],
  castTypeInfoToTensorInfo: [55, "status", ["at", "at"]],
  getTensorElementType: [60, "status", ["at", "at"]],
  getDimensionsCount: [61, "status", ["at", "at"]],
  getDimensions: [62, "status", ["at", "at", "size"]],
  getSymbolicDimensions: [63, "status", ["at", "at", "size"]],
  getTensorTypeAndShape: [65, "status", ["at", "at"]],
  createCpuMemoryInfo: [69, "status", ["int", "int", "at"]],
  allocatorFree: [76, "status", ["at", "at"]],
  getAllocatorWithDefaultOptions: [78, "status", ["at"]],
  releaseStatus: [93, "none", ["at"]],
  releaseSession: [95, "none", ["at"]],
  releaseValue: [96, "none", ["at"]],
  releaseRunOptions: [97, "none", ["at"]],
  releaseTypeInfo: [98, "none", ["at"]],
  releaseTensorTypeAndShapeInfo: [99, "none", ["at"]],
  releaseSessionOptions: [100, "none", ["at"]],
  addSessionConfigEntry: [130, "status", ["at", "text", "text"]],
  getResizedStringTensorElementBuffer: [252, "status", ["at", "size", "size", "at"]],
} as const satisfies Readonly<Record<string, Signature>>;

/** Number of places in the table up to the last function in use. */
export const TABLE_LENGTH = 1 + Math.max(...Object.values(C_FUNCTIONS).map(([index]) => index));

/** The types as koffi names them. Addresses are integers, which koffi passes on with the least work. */
export const KOFFI_TYPES: Readonly<Record<Parameter | Result, string>> = {
  at: "uint64",
  size: "uint64",
  int: "int",
  text: "str",
  status: "uint64",
  none: "void",
};

type Value<P extends Parameter | Result> = P extends "text" ? string : P extends "none" ? undefined : number;

type Values<P extends readonly Parameter[]> = { -readonly [I in keyof P]: Value<P[I]> };

type FunctionOf<S extends Signature> = NativeFunction<Values<S[2]>, Value<S[1]>>;

/** The functions, callable. */
export type CFunctions = {
  readonly [Name in keyof typeof C_FUNCTIONS]: FunctionOf<(typeof C_FUNCTIONS)[Name]>;
};
