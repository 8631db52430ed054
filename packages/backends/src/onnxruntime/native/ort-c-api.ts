import {
  ASYNC_STACK_BYTES,
  type Koffi,
  type NativeFunction,
  type NativeLibrary,
  requireKoffi,
} from "@tritonjs/core/internal";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { disableTelemetry } from "../../onnx-telemetry.js";
import { faultOfLibraryFile, foreignLibc } from "./library-file.js";
import { chooseLibrary } from "./ort-library.js";

/** ONNX Runtime's C interface in this process. Addresses are numbers: those of a process fit into 53 bits. */
export interface OrtApi extends CFunctions, Partial<NewerFunctions> {
  readonly koffi: Koffi;
  /** Keeps the library loaded: koffi unloads it with this object. */
  readonly library: NativeLibrary;
  /** Path of the library. */
  readonly file: string;
  readonly version: string;
  /** Version of the C interface: 23 for ONNX Runtime 1.23. */
  readonly apiVersion: number;
  /** How the library was built, in its own words. */
  readonly build: string;
  /** Execution providers that the library knows: `CUDAExecutionProvider`. The file of one may be missing. */
  readonly providers: readonly string[];
  /** Describes memory of the CPU that is not ONNX Runtime's own. */
  readonly cpuMemory: number;
  /** ONNX Runtime's allocator for small objects. */
  readonly allocator: number;
  /**
   * The environment that all sessions of the process share. The first call makes it.
   *
   * @param threads sizes of the thread pools that sessions share, if they share any
   */
  environment(threads?: GlobalThreads): number;
  /** True if the environment has thread pools that sessions share. */
  readonly hasGlobalThreads: boolean;
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

/** Sizes of the thread pools that all sessions share. 0 is ONNX Runtime's default. */
export interface GlobalThreads {
  readonly intra: number;
  readonly inter: number;
}

/** Only messages of this severity or above: ONNX Runtime also returns the errors that it writes. */
const FATAL = 4;

/** Threads of libuv's pool. Node reads the variable when the program starts. */
const POOL_SIZE = Math.max(1, Number(process.env.UV_THREADPOOL_SIZE) || 4);

/** Threads of the pool that runs of models leave to others: one for files and names, one for loading models. */
const KEPT_FREE = 2;

/**
 * Number of batches that run at a time, of all models together. The threads of libuv's pool run them, as they also read
 * files and look up names. An operator still uses all threads of its session.
 */
export const PARALLEL_RUNS: number = Math.max(1, POOL_SIZE - KEPT_FREE);

/** The libraries of this process, by the path that was asked for. Any number can be in use at a time. */
export const loadedLibraries = new Map<string, OrtApi>();

/**
 * Loads a library of ONNX Runtime, once in a process.
 *
 * @param file path of the library; by default that of {@link chooseLibrary}
 * @param provider prefers a library that has the files of this execution provider, if `file` is missing
 * @throws TritonError UNAVAILABLE when koffi or the library is missing or does not load, or when the library does not
 * have {@link API_VERSION}; UNSUPPORTED on Bun, and when the program has limited the stack of
 * koffi's calls
 */
export function loadOrtApi(file?: string, provider?: string): OrtApi {
  // A batch of which the model is closed never calls back there.
  if (process.versions.bun !== undefined) {
    throw errorFor("PLATFORM_NOT_SUPPORTED", "engine 'native': expected Node.js or Deno, got Bun");
  }
  disableTelemetry();
  const key = file ?? ` ${provider ?? ""}`;
  let api = loadedLibraries.get(key);
  if (api !== undefined) return api;
  const path = file ?? chooseLibrary(provider).file;
  api = loadedLibraries.get(path) ?? bindOrtApi(loadKoffi(), path);
  loadedLibraries.set(path, api).set(key, api);
  return api;
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
  const { library, table, version, apiVersion } = openLibrary(koffi, file);
  const bind = (signatures: Readonly<Record<string, Signature>>): object =>
    Object.fromEntries(
      Object.entries(signatures)
        .filter(([, [, , , since = API_VERSION]]) => since <= apiVersion)
        .map(([name, [index, result, parameters]]) => {
          const types = parameters.map((parameter) => KOFFI_TYPES[parameter]);
          const [at] = addresses(koffi, table + BigInt(8 * index), 1);
          return [name, koffi.decode(at!, koffi.proto(KOFFI_TYPES[result], types))];
        }),
    );
  const functions = bind(C_FUNCTIONS) as CFunctions;
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
  let environment: number | undefined;
  let hasGlobalThreads = false;
  return {
    ...functions,
    ...(bind(NEWER_FUNCTIONS) as Partial<NewerFunctions>),
    koffi,
    library,
    file,
    version,
    apiVersion,
    build: functions.getBuildInfoString().replace(/^ORT Build Info: /, ""),
    providers: availableProviders(koffi, functions, check),
    environment(threads) {
      if (environment !== undefined) return environment;
      hasGlobalThreads = threads !== undefined;
      environment =
        threads === undefined
          ? read((to) => functions.createEnv(FATAL, "tritonjs", to))
          : environmentWith(functions, threads, read, check);
      return environment;
    },
    get hasGlobalThreads() {
      return hasGlobalThreads;
    },
    cpuMemory: read((to) => functions.createCpuMemoryInfo(DEVICE_ALLOCATOR, DEFAULT_MEMORY, to)),
    allocator: read((to) => functions.getAllocatorWithDefaultOptions(to)),
    copy: koffi
      .load(process.platform === "win32" ? "msvcrt.dll" : null)
      .func("void memcpy(uint64_t to, uint64_t from, uint64_t size)"),
    check,
    read,
  };
}

function environmentWith(
  functions: CFunctions,
  { intra, inter }: GlobalThreads,
  read: OrtApi["read"],
  check: OrtApi["check"],
): number {
  const threads = read((to) => functions.createThreadingOptions(to));
  try {
    check(functions.setGlobalIntraOpNumThreads(threads, intra));
    check(functions.setGlobalInterOpNumThreads(threads, inter));
    check(functions.setGlobalSpinControl(threads, 0));
    return read((to) => functions.createEnvWithGlobalThreadPools(FATAL, "tritonjs", threads, to));
  } finally {
    functions.releaseThreadingOptions(threads);
  }
}

function availableProviders(koffi: Koffi, functions: CFunctions, check: OrtApi["check"]): readonly string[] {
  const out = new BigUint64Array(2);
  const at = Number(koffi.address(out));
  check(functions.getAvailableProviders(at, at + 8));
  const count = Number(BigInt.asIntN(32, out[1]!));
  const names = koffi.decode(out[0]!, "char *", count) as string[];
  check(functions.releaseAvailableProviders(Number(out[0]), count));
  return names;
}

const DEVICE_ALLOCATOR = 0;
const DEFAULT_MEMORY = 0;

interface OpenLibrary {
  readonly library: NativeLibrary;
  /** Address of the structure `OrtApi`. */
  readonly table: bigint;
  readonly version: string;
  readonly apiVersion: number;
}

function openLibrary(koffi: Koffi, file: string): OpenLibrary {
  const fault = faultOfLibraryFile(file);
  if (fault !== undefined) throw unusable(file, fault);
  let library: NativeLibrary;
  let apiBase: () => number;
  try {
    library = koffi.load(file);
  } catch (cause) {
    const text = foreignLibc(file) ?? `got a library that does not open (${TritonError.from(cause).message})`;
    throw unusable(file, text, cause);
  }
  try {
    apiBase = library.func("uint64_t OrtGetApiBase()") as () => number;
  } catch (cause) {
    throw unusable(file, "got a library without the function OrtGetApiBase", cause);
  }
  const [getApi, getVersion] = addresses(koffi, BigInt(apiBase()), 2);
  const version = (koffi.decode(getVersion!, koffi.proto("str", [])) as () => string)();
  // ONNX Runtime 1.x has version x of its C interface, and the versions before.
  const [, major = "0", minor = "0"] = /^(\d+)\.(\d+)/.exec(version) ?? [];
  const apiVersion = major === "1" ? Number(minor) : 1000 * Number(major);
  if (apiVersion < API_VERSION) {
    throw unusable(
      file,
      `got ONNX Runtime ${version}, which is too old: it has version ${apiVersion} of the interface`,
    );
  }
  const apiOf = koffi.decode(getApi!, koffi.proto("uint64", ["uint32"])) as (wanted: number) => number;
  const table = BigInt(apiOf(API_VERSION));
  if (table !== 0n) return { library, table, version, apiVersion };
  throw unusable(
    file,
    `got ONNX Runtime ${version}, which is too new: it no longer has version ${API_VERSION} of the interface`,
  );
}

function unusable(file: string, got: string, cause?: unknown): TritonError {
  const text = `cannot use '${file}' as ONNX Runtime: expected a library for ${process.platform} ${process.arch} with version ${API_VERSION} or newer of its C interface, ${got}`;
  return errorFor("PACKAGE_NOT_INSTALLED", text, { cause });
}

function addresses(koffi: Koffi, at: bigint, count: number): bigint[] {
  return Array.from(koffi.decode(at, "uint64", count) as ArrayLike<number | bigint>, BigInt);
}

/** Types of parameters: `at` is an address, `size` a size or an integer of 64 bits, `text` a NUL-terminated string. */
type Parameter = "at" | "size" | "int" | "text";

/** Results: `status` is the address of an error or 0. */
type Result = "status" | "text" | "int" | "none";

/** `since` is the version of the interface that has the function; by default {@link API_VERSION}. */
type Signature = readonly [index: number, result: Result, parameters: readonly Parameter[], since?: number];

/**
 * The version of ONNX Runtime's C interface that the table below describes. A library of this version or newer has all
 * of these functions at these places: newer versions only append.
 */
const API_VERSION = 16;

/** The functions in use: place in the structure `OrtApi`, result and parameters. */
const C_FUNCTIONS = {
  getErrorCode: [1, "int", ["at"]],
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
  createMemoryInfo: [68, "status", ["text", "int", "int", "int", "at"]],
  createCpuMemoryInfo: [69, "status", ["int", "int", "at"]],
  memoryInfoGetName: [71, "status", ["at", "at"]],
  allocatorAlloc: [75, "status", ["at", "size", "at"]],
  allocatorFree: [76, "status", ["at", "at"]],
  getAllocatorWithDefaultOptions: [78, "status", ["at"]],
  releaseStatus: [93, "none", ["at"]],
  releaseMemoryInfo: [94, "none", ["at"]],
  releaseSession: [95, "none", ["at"]],
  releaseValue: [96, "none", ["at"]],
  releaseRunOptions: [97, "none", ["at"]],
  releaseTypeInfo: [98, "none", ["at"]],
  releaseTensorTypeAndShapeInfo: [99, "none", ["at"]],
  releaseSessionOptions: [100, "none", ["at"]],
  createEnvWithGlobalThreadPools: [119, "status", ["int", "text", "at", "at"]],
  disablePerSessionThreads: [120, "status", ["at"]],
  createThreadingOptions: [121, "status", ["at"]],
  releaseThreadingOptions: [122, "none", ["at"]],
  getAvailableProviders: [125, "status", ["at", "at"]],
  releaseAvailableProviders: [126, "status", ["at", "int"]],
  addSessionConfigEntry: [130, "status", ["at", "text", "text"]],
  createAllocator: [131, "status", ["at", "at", "at"]],
  releaseAllocator: [132, "none", ["at"]],
  runWithBinding: [133, "status", ["at", "at", "at"]],
  createIoBinding: [134, "status", ["at", "at"]],
  releaseIoBinding: [135, "none", ["at"]],
  bindInput: [136, "status", ["at", "text", "at"]],
  bindOutput: [137, "status", ["at", "text", "at"]],
  bindOutputToDevice: [138, "status", ["at", "text", "at"]],
  getBoundOutputValues: [140, "status", ["at", "at", "at", "at"]],
  clearBoundInputs: [141, "none", ["at"]],
  clearBoundOutputs: [142, "none", ["at"]],
  setGlobalIntraOpNumThreads: [147, "status", ["at", "int"]],
  setGlobalInterOpNumThreads: [148, "status", ["at", "int"]],
  setGlobalSpinControl: [149, "status", ["at", "int"]],
  appendRocm: [153, "status", ["at", "at"]],
  addRunConfigEntry: [165, "status", ["at", "text", "text"]],
  appendTensorrt: [170, "status", ["at", "at"]],
  createTensorrtOptions: [171, "status", ["at"]],
  updateTensorrtOptions: [172, "status", ["at", "at", "at", "size"]],
  releaseTensorrtOptions: [174, "none", ["at"]],
  getTensorMemoryInfo: [194, "status", ["at", "at"]],
  synchronizeBoundInputs: [202, "status", ["at"]],
  synchronizeBoundOutputs: [203, "status", ["at"]],
  appendCuda: [204, "status", ["at", "at"]],
  createCudaOptions: [205, "status", ["at"]],
  updateCudaOptions: [206, "status", ["at", "at", "at", "size"]],
  releaseCudaOptions: [208, "none", ["at"]],
  appendExecutionProvider: [216, "status", ["at", "text", "at", "at", "size"]],
  appendCann: [220, "status", ["at", "at"]],
  createCannOptions: [221, "status", ["at"]],
  updateCannOptions: [222, "status", ["at", "at", "at", "size"]],
  releaseCannOptions: [224, "none", ["at"]],
  appendDnnl: [239, "status", ["at", "at"]],
  createDnnlOptions: [240, "status", ["at"]],
  updateDnnlOptions: [241, "status", ["at", "at", "at", "size"]],
  releaseDnnlOptions: [243, "none", ["at"]],
  getResizedStringTensorElementBuffer: [252, "status", ["at", "size", "size", "at"]],
  getBuildInfoString: [254, "text", []],
  createRocmOptions: [255, "status", ["at"]],
  updateRocmOptions: [256, "status", ["at", "at", "at", "size"]],
  releaseRocmOptions: [258, "none", ["at"]],
} as const satisfies Readonly<Record<string, Signature>>;

/** Functions of newer versions. They are missing with older libraries. */
const NEWER_FUNCTIONS = {
  appendOpenvino: [275, "status", ["at", "at", "at", "size"], 17],
  appendVitisai: [276, "status", ["at", "at", "at", "size"], 18],
  registerExecutionProviderLibrary: [301, "status", ["at", "text", "at"], 22],
  getEpDevices: [303, "status", ["at", "at", "at"], 22],
  appendEpDevices: [304, "status", ["at", "at", "at", "size", "at", "at", "size"], 22],
  epDeviceName: [312, "text", ["at"], 22],
} as const satisfies Readonly<Record<string, Signature>>;

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

type Functions<Table extends Readonly<Record<string, Signature>>> = {
  readonly [Name in keyof Table]: FunctionOf<Table[Name]>;
};

type CFunctions = Functions<typeof C_FUNCTIONS>;

type NewerFunctions = Functions<typeof NEWER_FUNCTIONS>;

/** A list of texts as C has it: addresses of NUL-terminated strings. The memory lives as long as the object. */
export class CStrings {
  readonly #list: BigUint64Array;
  readonly #bytes: readonly Uint8Array[];
  readonly #addresses = new Map<string, bigint>();
  readonly address: number;
  /** Length of the list. */
  length: number;

  constructor({ koffi }: Pick<OrtApi, "koffi">, texts: readonly string[]) {
    this.#bytes = texts.map((text) => Buffer.from(`${text}\0`));
    this.#list = BigUint64Array.from([...this.#bytes.map((bytes) => koffi.address(bytes)), 0n]);
    for (const [i, text] of texts.entries()) this.#addresses.set(text, this.#list[i]!);
    this.address = Number(koffi.address(this.#list));
    this.length = texts.length;
  }

  /** Replaces the list by some of its first texts. */
  choose(texts: readonly string[]): void {
    for (let i = 0; i < texts.length; i++) this.#list[i] = this.#addresses.get(texts[i]!)!;
    this.length = texts.length;
  }
}
