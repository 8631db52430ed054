import { errorFor, TritonError } from "@tritonjs/protocol";
import { type Appending, PROVIDERS, type ProviderRequest } from "../provider-names.js";
import { preloadCuda } from "./cuda-libraries.js";
import { CStrings, type OrtApi } from "./ort-c-api.js";

/** The error for a provider that this library, or this machine, does not have. The next provider may serve. */
export class ProviderUnavailable extends Error {
  override readonly name = "ProviderUnavailable";
}

/**
 * Appends a provider to the options of a session.
 *
 * @param settings address of the session's options
 * @throws ProviderUnavailable with ONNX Runtime's words if the library or the machine does not have the provider
 * @throws TritonError INVALID_ARG with ONNX Runtime's words if the provider refuses its options
 */
export function appendProvider(api: OrtApi, settings: number, request: ProviderRequest): void {
  const { name, options } = request;
  const appending = Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name]! : undefined;
  if (appending === undefined || !api.providers.includes(appending.listed)) {
    if (appendPlugin(api, settings, request, appending?.listed)) return;
    throw new ProviderUnavailable(notBuiltIn(api, appending?.listed ?? name));
  }
  const keys = new CStrings(api, Object.keys(options));
  const values = new CStrings(api, Object.values(options));
  if (name === "cuda" || name === "tensorrt") preloadCuda(api.koffi, api.file, name);
  if (appending.own !== undefined) {
    appendOwn(api, settings, request, OWN[appending.own]);
    return;
  }
  const keyed = appending.keyed === undefined ? undefined : api[appending.keyed];
  const status =
    keyed === undefined
      ? api.appendExecutionProvider(settings, appending.generic!, keys.address, values.address, keys.length)
      : keyed(settings, keys.address, values.address, keys.length);
  if (status === 0) return;
  const code = api.getErrorCode(status);
  const text = messageOf(api, status);
  if (UNKNOWN_NAME.test(text)) {
    appendExported(api, settings, request, appending, text);
    return;
  }
  if (code === INVALID_ARGUMENT && keys.length > 0) throw refused(name, options, text);
  throw new ProviderUnavailable(text);
}

/** ONNX Runtime's error code for arguments that it refuses. */
const INVALID_ARGUMENT = 2;

/** ONNX Runtime's words for a provider that the generic function of a version does not take. */
const UNKNOWN_NAME = /unknown provider name|is not supported in this build|currently supported values are/i;

/** ONNX Runtime's words, also from the functions for options, if the library of a provider does not load. */
const NOT_LOADED = /failed to load|cannot open shared object|loadlibrary failed/i;

/** The places of the functions of providers that have options objects. */
const OWN = {
  Cuda: ["createCudaOptions", "updateCudaOptions", "appendCuda", "releaseCudaOptions"],
  Tensorrt: ["createTensorrtOptions", "updateTensorrtOptions", "appendTensorrt", "releaseTensorrtOptions"],
  Rocm: ["createRocmOptions", "updateRocmOptions", "appendRocm", "releaseRocmOptions"],
  Cann: ["createCannOptions", "updateCannOptions", "appendCann", "releaseCannOptions"],
  Dnnl: ["createDnnlOptions", "updateDnnlOptions", "appendDnnl", "releaseDnnlOptions"],
} as const satisfies Readonly<Record<string, readonly (keyof OrtApi)[]>>;

function appendOwn(
  api: OrtApi,
  settings: number,
  { name, options }: ProviderRequest,
  [create, update, append, release]: (typeof OWN)[keyof typeof OWN],
): void {
  // Making the object loads the library of the provider.
  const object = available(() => api.read((to) => api[create](to)));
  try {
    const keys = new CStrings(api, Object.keys(options));
    const values = new CStrings(api, Object.values(options));
    if (keys.length > 0) {
      const status = api[update](object, keys.address, values.address, keys.length);
      if (status !== 0) {
        const text = messageOf(api, status);
        if (NOT_LOADED.test(text)) throw new ProviderUnavailable(text);
        throw refused(name, options, text);
      }
    }
    available(() => api.check(api[append](settings, object)));
  } finally {
    api[release](object);
  }
}

function available<T>(call: () => T): T {
  try {
    return call();
  } catch (cause) {
    throw new ProviderUnavailable(TritonError.from(cause).message, { cause });
  }
}

function appendExported(
  api: OrtApi,
  settings: number,
  { name, options }: ProviderRequest,
  { exported }: Appending,
  text: string,
): void {
  if (exported === undefined) throw new ProviderUnavailable(text);
  const [symbol, key] = exported;
  const others = Object.keys(options).filter((one) => one !== key);
  if (others.length > 0) {
    const why = `ONNX Runtime ${api.version} passes only '${key}' to it`;
    throw refused(name, Object.fromEntries(others.map((one) => [one, options[one]!])), why);
  }
  available(() => {
    const append = api.library.func(`uint64_t ${symbol}(uint64_t settings, int value)`) as (
      settings: number,
      value: number,
    ) => number;
    api.check(append(settings, Number(options[key] ?? 0)));
  });
}

function messageOf(api: OrtApi, status: number): string {
  try {
    api.check(status);
  } catch (error) {
    return TritonError.from(error).message;
  }
  return "";
}

function refused(name: string, options: Readonly<Record<string, string>>, text: string): TritonError {
  const given = Object.entries(options).map(([key, value]) => `${key}=${value}`);
  return errorFor(
    "INVALID_CONFIG",
    `execution provider '${name}' refuses its options (${given.join(", ")}): ${text}`,
  );
}

function notBuiltIn({ version, file, providers }: OrtApi, wanted: string): string {
  return `ONNX Runtime ${version} in '${file}' was built without ${wanted}; it has ${providers.join(", ")}`;
}

/**
 * Registers a library of plug-in providers with the environment of ONNX Runtime, once in a process.
 *
 * @param name name of the registration
 * @throws TritonError INVALID_ARG with ONNX Runtime's words for a library that it refuses; UNAVAILABLE if ONNX Runtime
 * is older than 1.22, the first version with plug-in providers
 */
export function registerProviderLibrary(api: OrtApi, name: string, path: string): void {
  if (api.registerExecutionProviderLibrary === undefined) {
    const text = `execution provider library '${name}': expected ONNX Runtime 1.22 or newer, got ${api.version} in '${api.file}'`;
    throw errorFor("PACKAGE_NOT_INSTALLED", text);
  }
  const paths = registered.get(api) ?? new Map<string, string>();
  registered.set(api, paths);
  const before = paths.get(name);
  if (before === path) return;
  if (before !== undefined) {
    const text = `execution provider library '${name}': it is registered as '${before}', so it cannot be '${path}' too`;
    throw errorFor("INVALID_CONFIG", text);
  }
  const bytes = Buffer.from(`${path}\0`, process.platform === "win32" ? "utf16le" : "utf8");
  const status = api.registerExecutionProviderLibrary(
    api.environment(),
    name,
    Number(api.koffi.address(bytes)),
  );
  if (status !== 0) {
    const text = `cannot register execution provider library '${name}' of '${path}': ${messageOf(api, status)}`;
    throw errorFor("INVALID_CONFIG", text);
  }
  paths.set(name, path);
}

const registered = new WeakMap<OrtApi, Map<string, string>>();

/**
 * Appends the devices of a plug-in provider: all that it offers, or the one of the option `device_id`.
 *
 * @returns false if no registered library has the provider
 */
function appendPlugin(
  api: OrtApi,
  settings: number,
  { name, options: given }: ProviderRequest,
  listed: string | undefined,
): boolean {
  if (api.getEpDevices === undefined || !registered.has(api)) return false;
  const out = new BigUint64Array(2);
  const at = Number(api.koffi.address(out));
  api.check(api.getEpDevices(api.environment(), at, at + 8));
  const all = Array.from(
    api.koffi.decode(out[0]!, "uint64", Number(out[1])) as ArrayLike<number | bigint>,
    BigInt,
  );
  const offered = all.filter((device) => [name, listed].includes(api.epDeviceName!(Number(device))));
  if (offered.length === 0) return false;
  const { device_id: number, ...options } = given;
  const devices = number === undefined ? offered : offered.slice(Number(number), Number(number) + 1);
  if (devices.length === 0) {
    throw new ProviderUnavailable(`it offers ${offered.length} devices, so there is no device ${number}`);
  }
  const chosen = BigUint64Array.from(devices);
  const keys = new CStrings(api, Object.keys(options));
  const values = new CStrings(api, Object.values(options));
  const status = api.appendEpDevices!(
    settings,
    api.environment(),
    Number(api.koffi.address(chosen)),
    chosen.length,
    keys.address,
    values.address,
    keys.length,
  );
  if (status === 0) return true;
  const code = api.getErrorCode(status);
  const text = messageOf(api, status);
  if (code === INVALID_ARGUMENT && keys.length > 0) throw refused(name, options, text);
  throw new ProviderUnavailable(text);
}
