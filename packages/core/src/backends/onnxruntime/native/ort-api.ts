import { TritonError } from "@tritonjs/protocol";
import { ASYNC_STACK_BYTES, type Koffi, type NativeLibrary, requireKoffi } from "../../../koffi.js";
import { disableTelemetry } from "../disable-telemetry.js";
import { API_VERSION, C_FUNCTIONS, type CFunctions, KOFFI_TYPES, TABLE_LENGTH } from "./c-functions.js";
import { ortLibraryFile } from "./library-file.js";

/** ONNX Runtime's C interface in this process. Addresses are numbers: those of a process fit into 53 bits. */
export interface OrtApi extends CFunctions {
  readonly koffi: Koffi;
  /** Keeps the library loaded: koffi unloads it with this object. */
  readonly library: NativeLibrary;
  /** Version of the library, such as `1.30.0`. */
  readonly version: string;
  /** The environment that all sessions of the process share. */
  readonly environment: number;
  /** Describes memory of the CPU that is not ONNX Runtime's own. */
  readonly cpuMemory: number;
  /** ONNX Runtime's allocator for small objects. */
  readonly allocator: number;
  /** Copies `byteSize` bytes from one address to another. */
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
    throw new TritonError(
      "UNAVAILABLE",
      "cannot load the package 'koffi', which the engine 'native' needs: npm install koffi",
      { reason: "PACKAGE_NOT_INSTALLED", cause },
    );
  }
  const { async_stack_size } = koffi.config();
  if (async_stack_size >= ASYNC_STACK_BYTES) return koffi;
  throw new TritonError(
    "UNSUPPORTED",
    `koffi's setting async_stack_size: expected at least ${ASYNC_STACK_BYTES}, got ${async_stack_size}; set it before ` +
      "the program loads its first library",
    { reason: "PLATFORM_NOT_SUPPORTED" },
  );
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
  /** Addresses of the functions. */
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
  throw new TritonError(
    "UNAVAILABLE",
    `cannot use '${file}' as ONNX Runtime: expected a library with version ${API_VERSION} of its C interface, got ` +
      `version ${version} of ONNX Runtime${why}`,
    { reason: "PACKAGE_NOT_INSTALLED", cause },
  );
}

function addresses(koffi: Koffi, at: bigint, count: number): bigint[] {
  return Array.from(koffi.decode(at, "uint64", count) as ArrayLike<number | bigint>, BigInt);
}
