import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  ASYNC_STACK_BYTES,
  type Koffi,
  type NativeFunction,
  type NativeLibrary,
  requireKoffi,
} from "@tritonjs/core/internal";
import { disableTelemetry, unbundledRequire } from "@tritonjs/core/internal/worker";
import { errorFor, TritonError } from "@tritonjs/protocol";

/** ONNX Runtime's C interface in this process. Addresses are numbers: those of a process fit into 53 bits. */
export interface OrtApi extends CFunctions {
  readonly koffi: Koffi;
  /** Keeps the library loaded: koffi unloads it with this object. */
  readonly library: NativeLibrary;
  readonly version: string;
  /** The environment that all sessions of the process share. */
  readonly environment: number;
  /** Describes memory of the CPU that is not ONNX Runtime's own. */
  readonly cpuMemory: number;
  /** ONNX Runtime's allocator for small objects. */
  readonly allocator: number;
  copy(to: number, from: number, byteSize: number): void;
  /** @throws TritonError INTERNAL with ONNX Runtime's words if `status` is an error, which is released */
  check(status: number): void;
  /**
   * Calls a function that writes an address or a size, and returns it.
   *
   * @throws TritonError like `check`
   */
  read(call: (at: number) => number): number;
}

/** Only messages of this severity or above: ONNX Runtime also returns the errors that it writes. */
const FATAL = 4;

let loaded: OrtApi | undefined;

/**
 * Loads ONNX Runtime's C interface.
 *
 * @throws TritonError UNAVAILABLE when koffi or onnxruntime-node is not installed or does not load, or when the library
 * does not have {@link API_VERSION}; UNSUPPORTED when the program has limited the stack of koffi's calls
 */
export function loadOrtApi(): OrtApi {
  disableTelemetry();
  loaded ??= bindOrtApi(loadKoffi(), ortLibraryFile());
  return loaded;
}

function loadKoffi(): Koffi {
  let koffi: Koffi;
  try {
    koffi = requireKoffi();
  } catch (cause) {
    const text = "cannot load the package 'koffi', which the engine 'native' needs: npm install koffi";
    throw errorFor("PACKAGE_NOT_INSTALLED", text, { cause });
  }
  const { async_stack_size } = koffi.config();
  if (async_stack_size >= ASYNC_STACK_BYTES) return koffi;
  const text =
    `koffi's setting async_stack_size: expected at least ${ASYNC_STACK_BYTES}, got ${async_stack_size}; set it before ` +
    "the program loads its first library";
  throw errorFor("PLATFORM_NOT_SUPPORTED", text);
}

/**
 * Binds the functions of a library.
 *
 * @throws TritonError UNAVAILABLE for a file that is not a library of ONNX Runtime with {@link API_VERSION}
 */
export function bindOrtApi(koffi: Koffi, file: string): OrtApi {
  const { library, table, version } = openLibrary(koffi, file);
  const functions = Object.fromEntries(
    Object.entries(C_FUNCTIONS).map(([name, [index, result, parameters]]) => {
      const types = parameters.map((parameter) => KOFFI_TYPES[parameter]);
      return [name, koffi.decode(table[index]!, koffi.proto(KOFFI_TYPES[result], types))];
    }),
  ) as unknown as CFunctions;
  const word = new BigUint64Array(1);
  const at = Number(koffi.address(word));
  const check = (status: number): void => {
    if (status === 0) return;
    const message = functions.getErrorMessage(status);
    functions.releaseStatus(status);
    throw new TritonError("INTERNAL", message);
  };
  const read = (call: (at: number) => number): number => {
    word[0] = 0n;
    check(call(at));
    return Number(word[0]);
  };
  return {
    ...functions,
    koffi,
    library,
    version,
    environment: read((to) => functions.createEnv(FATAL, "tritonjs", to)),
    cpuMemory: read((to) => functions.createCpuMemoryInfo(DEVICE_ALLOCATOR, DEFAULT_MEMORY, to)),
    allocator: read((to) => functions.getAllocatorWithDefaultOptions(to)),
    copy: koffi
      .load(process.platform === "win32" ? "msvcrt.dll" : null)
      .func("void memcpy(uint64_t to, uint64_t from, uint64_t size)"),
    check,
    read,
  };
}

const DEVICE_ALLOCATOR = 0;
const DEFAULT_MEMORY = 0;

interface OpenLibrary {
  readonly library: NativeLibrary;
  readonly table: readonly bigint[];
  readonly version: string;
}

function openLibrary(koffi: Koffi, file: string): OpenLibrary {
  let version = "unknown";
  let cause: unknown;
  try {
    const library = koffi.load(file);
    const base = BigInt(library.func("uint64_t OrtGetApiBase()")());
    const [getApi, getVersion] = addresses(koffi, base, 2);
    version = (koffi.decode(getVersion!, koffi.proto("str", [])) as () => string)();
    const api = (koffi.decode(getApi!, koffi.proto("uint64", ["uint32"])) as (wanted: number) => number)(
      API_VERSION,
    );
    if (api !== 0) return { library, table: addresses(koffi, BigInt(api), TABLE_LENGTH), version };
  } catch (thrown) {
    cause = thrown;
  }
  const why = cause === undefined ? "" : ` (${TritonError.from(cause).message})`;
  const text =
    `cannot use '${file}' as ONNX Runtime: expected a library with version ${API_VERSION} of its C interface, got ` +
    `version ${version} of ONNX Runtime${why}`;
  throw errorFor("PACKAGE_NOT_INSTALLED", text, { cause });
}

function addresses(koffi: Koffi, at: bigint, count: number): bigint[] {
  return Array.from(koffi.decode(at, "uint64", count) as ArrayLike<number | bigint>, BigInt);
}

/** Types of parameters: `at` is an address, `size` a size or an integer of 64 bits, `text` a NUL-terminated string. */
type Parameter = "at" | "size" | "int" | "text";

/** Results: `status` is the address of an error or 0. */
type Result = "status" | "text" | "int" | "none";

type Signature = readonly [index: number, result: Result, parameters: readonly Parameter[]];

/**
 * The version of ONNX Runtime's C interface that the table below describes. A library of this version or newer has all
 * of these functions at these places: newer versions only append.
 */
const API_VERSION = 16;

/** The functions in use: place in the structure `OrtApi`, result and parameters. */
const C_FUNCTIONS = {
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
const TABLE_LENGTH = 1 + Math.max(...Object.values(C_FUNCTIONS).map(([index]) => index));

/** The types as koffi names them. Addresses are integers, which koffi passes on with the least work. */
const KOFFI_TYPES: Readonly<Record<Parameter | Result, string>> = {
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

type CFunctions = {
  readonly [Name in keyof typeof C_FUNCTIONS]: FunctionOf<(typeof C_FUNCTIONS)[Name]>;
};

/** Names of ONNX Runtime's library by platform: the name that the binding of onnxruntime-node links to. */
const NAMES: Readonly<Record<string, string>> = {
  linux: "libonnxruntime.so.1",
  darwin: "libonnxruntime.1.dylib",
  win32: "onnxruntime.dll",
};

/**
 * Path of the library of ONNX Runtime inside the installed onnxruntime-node. Both engines use this one file, so a
 * process has it in memory once.
 *
 * @throws TritonError UNAVAILABLE when onnxruntime-node is not installed, or has no library for this machine
 */
export function ortLibraryFile(
  platform: string = process.platform,
  arch: string = process.arch,
  packageFile: () => string = () =>
    unbundledRequire(import.meta.url).resolve("onnxruntime-node/package.json"),
): string {
  try {
    const bin = join(dirname(packageFile()), "bin");
    for (const binding of readdirSync(bin)) {
      const folder = join(bin, binding, platform, arch);
      const file = filesOf(folder).find((one) => one === NAMES[platform]);
      if (file !== undefined) return join(folder, file);
    }
  } catch (cause) {
    const text = `cannot find onnxruntime-node (${TritonError.from(cause).message}): install it next to @tritonjs/backends`;
    throw errorFor("PACKAGE_NOT_INSTALLED", text, { cause });
  }
  const text =
    `cannot find ONNX Runtime's library: expected ${NAMES[platform] ?? "a file"} in the folder bin of onnxruntime-node ` +
    `for ${platform} ${arch}, got none`;
  throw errorFor("PACKAGE_NOT_INSTALLED", text);
}

function filesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
