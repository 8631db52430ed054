import type { NativeFunction, Tensors } from "@tritonjs/core/internal";
import { ConcurrencyGate, errorFor, fromOnnxType, TritonError } from "@tritonjs/protocol";
import { externalDataEntry, takeDefaults } from "../default-inputs.js";
import type { SessionTensors } from "../describe-onnx-model.js";
import { modelLabel } from "../onnx-file.js";
import type { SessionData } from "../onnx-options.js";
import { type ProviderRequest, providerRequest } from "../provider-names.js";
import { appendProvider, ProviderUnavailable, registerProviderLibrary } from "./execution-providers.js";
import { advice } from "./gpu-doctor.js";
import { type OrtApi, PARALLEL_RUNS } from "./ort-c-api.js";

/** An open session. Any number of batches may run on it at a time. */
export interface NativeSession {
  readonly api: OrtApi;
  readonly address: number;
  readonly inputs: readonly NativeTensor[];
  readonly outputs: readonly NativeTensor[];
  /** Values of inputs that a run may lack. */
  readonly defaults: Tensors;
  /** Execution providers by preference; the last is `cpu`. */
  readonly providers: readonly string[];
  /**
   * Runs a function that runs a batch: when a thread of the pool is free for it, and for providers that take one call
   * at a time, when no other session of such a provider is called.
   */
  call<T>(run: () => Promise<T>): Promise<T>;
  /** Whether it captures CUDA graphs. It then runs one batch at a time. */
  readonly capturesGraphs: boolean;
  /** Memory of the device for values that stay there; undefined if the session runs on the CPU. */
  readonly deviceMemory: DeviceMemory | undefined;
  /** True while a provider that takes one call at a time is called, so that it must not be called directly. */
  isOccupied(): boolean;
  /**
   * Opens a further session on the same providers, which closes with this one. To be called where a batch may run.
   *
   * @returns its address
   */
  openHelper(model: Uint8Array): number;
  /** Called before the session closes, where a batch may run. */
  onClose: (() => void) | undefined;
  /** Releases the session, on which no batch may run. */
  close(): Promise<void>;
}

/** Memory of a device, as ONNX Runtime describes it. */
interface DeviceMemory {
  /** Address of the description. */
  readonly info: number;
  /** Name and number: equal for sessions that can use each other's values. */
  readonly key: string;
  /** Number of the GPU for CUDA's library; undefined for devices of other makers. */
  readonly cudaDevice: number | undefined;
}

/** Names of the memory of devices, newer ones first. Other providers use memory of the CPU. */
const DEVICE_MEMORY: Readonly<Record<string, readonly string[]>> = {
  cuda: ["Cuda"],
  tensorrt: ["Cuda"],
  nvtensorrtrtx: ["Cuda"],
  rocm: ["Hip"],
  migraphx: ["Hip"],
  cann: ["Cann"],
  dml: ["DML"],
  webgpu: ["WebGPU_Buf", "WebGPU_Buffer"],
};

function deviceMemoryOf(api: OrtApi, [first]: readonly ProviderRequest[]): DeviceMemory | undefined {
  const names = first === undefined ? [] : (DEVICE_MEMORY[first.name] ?? []);
  const id = Number(first?.options.device_id ?? 0);
  for (const name of names) {
    try {
      const info = api.read((to) => api.createMemoryInfo(name, 0, id, 0, to));
      return { info, key: `${name} ${id}`, cudaDevice: name === "Cuda" ? id : undefined };
    } catch {
      // Versions have different names.
    }
  }
  return undefined;
}

/**
 * Opens a session with the providers that can be used, in their order: operators that one does not have go to the next,
 * at last to the CPU.
 *
 * @param warn called for each provider that is skipped
 * @throws TritonError INVALID_ARG with ONNX Runtime's words if the model does not load, if a provider refuses its
 * options, and with `strict` if the first provider cannot be used
 */
async function open(api: OrtApi, data: SessionData, warn: (text: string) => void): Promise<NativeSession> {
  const { model, native } = data;
  const { content, defaults } = await takeDefaults(data);
  const requests = data.providers.map(providerRequest);
  let chain = requests.filter(({ name }) => name !== "cpu");
  let settings: number | undefined;
  try {
    for (const [name, path] of Object.entries(native.providerLibraries ?? {})) {
      registerProviderLibrary(api, name, path);
    }
    for (;;) {
      settings = createSettings(api, data, externalDataEntry(model, content));
      if (chain.some(hasGraphs)) assertGraphs(api);
      const appended = appendProviders(api, settings, chain, data, warn);
      const isAlone = appended.some(({ name }) => ALONE.has(name));
      const load = <T>(call: () => Promise<T>): Promise<T> =>
        isAlone ? alone(call, loadLane) : loadLane.run(call, undefined);
      let address: number;
      try {
        const options = settings;
        address = await load(() => create(api, content ?? model, options));
      } catch (error) {
        const [failed, next] = appended;
        if (failed !== undefined && hasGraphs(failed)) {
          warn(`CUDA graphs cannot be used: ${firstLine(error)}; trying without them`);
          chain = appended.map(withoutGraphs);
          api.releaseSessionOptions(settings);
          settings = undefined;
          continue;
        }
        // Without providers the model is at fault; with them, the next try tells.
        if (failed === undefined || data.strict) throw error;
        warn(
          `execution provider '${failed.name}' cannot be used: ${firstLine(error)}${advice(failed.name, api.file)}; trying '${next?.name ?? "cpu"}'`,
        );
        chain = appended.slice(1);
        api.releaseSessionOptions(settings);
        settings = undefined;
        continue;
      }
      const helpers: number[] = [];
      const deviceMemory = deviceMemoryOf(api, appended);
      const capturesGraphs = appended[0] !== undefined && hasGraphs(appended[0]);
      // ONNX Runtime captures and replays graphs of one session only in turns.
      const graphLane = capturesGraphs ? new ConcurrencyGate(1, unlimited) : undefined;
      const inLane = <T>(run: () => Promise<T>): Promise<T> =>
        isAlone ? alone(run, runLane) : runLane.run(run, undefined);
      const session: NativeSession = {
        api,
        address,
        inputs: nativeTensors(api, address, "input"),
        outputs: nativeTensors(api, address, "output"),
        defaults,
        providers: [...appended.map(({ name }) => name), "cpu"],
        call: (run) => (graphLane === undefined ? inLane(run) : graphLane.run(() => inLane(run), undefined)),
        capturesGraphs,
        deviceMemory,
        isOccupied: () => isAlone && isAloneBusy,
        openHelper: (bytes) => {
          const settings = createSettings(api, data);
          try {
            appendProviders(api, settings, appended.map(withoutGraphs), data, () => {});
            const at = Number(api.koffi.address(bytes));
            const environment = api.environment();
            const helper = api.read((to) =>
              api.createSessionFromArray(environment, at, bytes.byteLength, settings, to),
            );
            helpers.push(helper);
            return helper;
          } finally {
            api.releaseSessionOptions(settings);
          }
        },
        onClose: undefined,
        close: () =>
          load(async () => {
            session.onClose?.();
            for (const helper of helpers) api.releaseSession(helper);
            if (deviceMemory !== undefined) api.releaseMemoryInfo(deviceMemory.info);
            await callAsync([], api.releaseSession, address);
          }),
      };
      return session;
    }
  } catch (cause) {
    const text = `cannot load the ONNX model ${modelLabel(model)}: ${firstLine(cause)}`;
    throw errorFor("INVALID_MODEL", text, { cause });
  } finally {
    if (settings !== undefined) api.releaseSessionOptions(settings);
  }
}

/** Whether a provider captures CUDA graphs that are told apart by numbers. */
function hasGraphs({ name, options }: ProviderRequest): boolean {
  return name === "cuda" && /^(1|true)$/i.test(options.enable_cuda_graph ?? "");
}

function withoutGraphs({ name, options }: ProviderRequest): ProviderRequest {
  const { enable_cuda_graph: _, ...others } = options;
  return { name, options: others };
}

/** The first version of ONNX Runtime that tells the CUDA graphs of a session apart. */
const GRAPHS_SINCE = 18;

function assertGraphs({ apiVersion, version, file }: OrtApi): void {
  if (apiVersion >= GRAPHS_SINCE) return;
  const text = `CUDA graphs: expected ONNX Runtime 1.${GRAPHS_SINCE} or newer, got ${version} in '${file}'`;
  throw errorFor("INVALID_CONFIG", text);
}

/** Appends the providers of a session, and returns those that can be used. */
function appendProviders(
  api: OrtApi,
  settings: number,
  chain: readonly ProviderRequest[],
  { strict }: SessionData,
  warn: (text: string) => void,
): readonly ProviderRequest[] {
  return chain.filter((request, i) => {
    try {
      appendProvider(api, settings, request);
      return true;
    } catch (error) {
      if (!(error instanceof ProviderUnavailable)) throw error;
      const text = `execution provider '${request.name}' cannot be used: ${firstLine(error)}${advice(request.name, api.file)}`;
      if (strict && i === 0) throw errorFor("INVALID_MODEL", text, { cause: error });
      warn(`${text}; trying '${chain[i + 1]?.name ?? "cpu"}'`);
      return false;
    }
  });
}

function firstLine(error: unknown): string {
  return TritonError.from(error).message.split("\n")[0]!;
}

async function create(api: OrtApi, model: string | Uint8Array, settings: number): Promise<number> {
  const result = new BigUint64Array(1);
  const bytes = typeof model === "string" ? pathBytes(model) : model;
  const [to, at] = [result, bytes].map((array) => Number(api.koffi.address(array))) as [number, number];
  const environment = api.environment();
  const held = [result, bytes];
  const status =
    typeof model === "string"
      ? await callAsync(held, api.createSession, environment, at, settings, to)
      : await callAsync(held, api.createSessionFromArray, environment, at, bytes.byteLength, settings, to);
  api.check(status);
  return Number(result[0]);
}

/** A path as ONNX Runtime takes it: of 16-bit characters on Windows. */
function pathBytes(path: string): Uint8Array {
  return Buffer.from(`${path}\0`, process.platform === "win32" ? "utf16le" : "utf8");
}

/**
 * Calls a function on a thread of libuv's pool.
 *
 * @param held arrays whose memory the function uses; they are kept alive until it returns
 * @throws the error of koffi if the call cannot be made
 */
export function callAsync<Args extends readonly unknown[], Result>(
  held: readonly unknown[],
  called: NativeFunction<Args, Result>,
  ...args: Args
): Promise<Result> {
  return new Promise((resolve, reject) => {
    let kept: readonly unknown[] | undefined = held;
    called.async(...args, (error, result) => {
      kept = undefined;
      if (error === null) resolve(result);
      else reject(error);
    });
    void kept;
  });
}

/** The tensors of a session for the description of its model. */
export function describeSession({ inputs, outputs }: NativeSession): SessionTensors {
  const described = (tensors: readonly NativeTensor[]) =>
    tensors
      .filter(({ elementType }) => elementType !== 0)
      .map(({ name, elementType, dims: shape }) => ({ name, dtype: fromOnnxType(elementType), shape }));
  return { inputs: described(inputs), outputs: described(outputs) };
}

const LEVELS: Readonly<Record<string, number>> = { disabled: 0, basic: 1, extended: 2, layout: 3, all: 99 };

/**
 * Makes the options of a session, as `onnxruntime-node` does from the same settings. The caller releases them.
 *
 * @returns the address of the options
 * @throws TritonError INTERNAL for values that ONNX Runtime refuses
 */
function createSettings(
  api: OrtApi,
  { sessionOptions: settings, native }: SessionData,
  entries: Readonly<Record<string, string>> = {},
): number {
  const options = api.read((to) => api.createSessionOptions(to));
  try {
    api.environment(native.globalThreads);
    if (native.globalThreads !== undefined && api.hasGlobalThreads) {
      api.check(api.disablePerSessionThreads(options));
    }
    const { graphOptimizationLevel = "all", executionMode, extra } = settings;
    api.check(api.setSessionGraphOptimizationLevel(options, LEVELS[String(graphOptimizationLevel)]!));
    api.check(api.setSessionExecutionMode(options, executionMode === "parallel" ? 1 : 0));
    api.check(api.setIntraOpNumThreads(options, Number(settings.intraOpNumThreads)));
    if (settings.interOpNumThreads !== undefined)
      api.check(api.setInterOpNumThreads(options, Number(settings.interOpNumThreads)));
    if (settings.enableCpuMemArena === false) api.check(api.disableCpuMemArena(options));
    if (settings.enableMemPattern === false) api.check(api.disableMemPattern(options));
    api.check(api.setSessionLogSeverityLevel(options, Number(settings.logSeverityLevel)));
    for (const [key, value] of Object.entries({ ...(extra as object), ...entries })) {
      api.check(api.addSessionConfigEntry(options, key, String(value)));
    }
    return options;
  } catch (error) {
    api.releaseSessionOptions(options);
    throw error;
  }
}

/** An input or output of an open session. */
export interface NativeTensor {
  readonly name: string;
  /** ONNX's number of the element type; 0 for a value that is not a tensor. */
  readonly elementType: number;
  /** -1 for a size that is known only at run time. Empty for a scalar, and when the rank is unknown. */
  readonly dims: readonly number[];
  readonly dimNames: readonly string[];
}

function nativeTensors(api: OrtApi, session: number, side: "input" | "output"): NativeTensor[] {
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

const unlimited = Number.POSITIVE_INFINITY;

/** Runs of models, in the order in which they begin to wait. */
const runLane = new ConcurrencyGate(PARALLEL_RUNS, unlimited);

/** Providers that take one call at a time in a process, of all their sessions. WebGPU crashes when two threads use it. */
const ALONE: ReadonlySet<string> = new Set(["webgpu", "dml"]);

/** Calls of providers that take one at a time. */
const aloneLane = new ConcurrencyGate(1, unlimited);
let isAloneBusy = false;

function alone<T>(call: () => Promise<T>, lane: ConcurrencyGate): Promise<T> {
  return aloneLane.run(async () => {
    isAloneBusy = true;
    try {
      return await lane.run(call, undefined);
    } finally {
      isAloneBusy = false;
    }
  }, undefined);
}

/** Opening and closing sessions, one at a time, so that a large model delays no batch. */
const loadLane = new ConcurrencyGate(1, unlimited);

/** A model whose instances share one session: opened for the first of them, closed after the last. */
export class NativeModel {
  #users = 0;
  #session: Promise<NativeSession> | undefined;
  #closed: Promise<void> = Promise.resolve();
  /** True while the session is open to describe the model. */
  #isOpened = false;

  /** @param data makes the settings of the session */
  constructor(
    readonly data: () => SessionData,
    private readonly warn: (text: string) => void,
  ) {}

  /** Opens the session to describe the model. It stays open until `dropOpened`. */
  async open(api: OrtApi): Promise<NativeSession> {
    const session = await this.acquire(api);
    this.#isOpened = true;
    return session;
  }

  /** Gives up the session that describes the model, if there is one. Instances keep it open. */
  async dropOpened(): Promise<void> {
    if (!this.#isOpened) return;
    this.#isOpened = false;
    await this.release();
  }

  /**
   * Opens the session, or waits for it. Call `release` once for each call that resolves.
   *
   * @throws TritonError INVALID_ARG with ONNX Runtime's words for a model that does not load
   */
  async acquire(api: OrtApi): Promise<NativeSession> {
    this.#users++;
    this.#session ??= this.#closed.then(() => open(api, this.data(), this.warn));
    try {
      return await this.#session;
    } catch (error) {
      this.#users--;
      if (this.#users === 0) this.#session = undefined;
      throw error;
    }
  }

  /** Ends the use of the session by one instance. Resolves when it is closed, if this was the last one. */
  async release(): Promise<void> {
    if (--this.#users > 0) return;
    const session = this.#session;
    this.#session = undefined;
    this.#closed = session === undefined ? this.#closed : session.then((open) => open.close());
    await this.#closed;
  }
}
