import { readFile, stat } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { isMainThread } from "node:worker_threads";
import type {
  ModelDescription,
  WorkerBatch,
  WorkerHost,
  WorkerModel,
  WorkerResult,
} from "@tritonjs/core/backend";
import type { DeviceId, InstanceInfo, OpenModel, Tensors } from "@tritonjs/core/internal";
import { findInstalled, importPeer, sequenceTensors, splitOutputs } from "@tritonjs/core/internal/worker";
import { definedMembers, errorFor, type ModelConfig, TritonError } from "@tritonjs/protocol";
import type { InferenceSession } from "onnxruntime-node";
import { disableTelemetry } from "../onnx-telemetry.js";
import { externalDataEntry, takeDefaults, withDefaults } from "./default-inputs.js";
import { describeOnnxModel, type SessionTensors } from "./describe-onnx-model.js";
import { externalLocations, modelLabel } from "./onnx-file.js";
import {
  type NativeOptions,
  type OnnxRuntimeOptions,
  providersForWorker,
  type SessionData,
} from "./onnx-options.js";
import { fromResults, scalarInputs, scalarOutputs, sessionTensors, toFeeds } from "./ort-tensors.js";
import { canonicalName, type ExecutionProvider } from "./provider-names.js";
import { isBroken, isOutOfMemory, MOST_BYTES, refuseWithoutSimd, tooLarge } from "./wasm-host.js";

/** An open session, and what runs it. */
export interface OpenSession {
  readonly session: InferenceSession;
  /** Values of inputs that a run may lack. */
  readonly defaults: Tensors;
  readonly provider: string;
  /** Why WebAssembly runs a session that was to run natively. */
  readonly insteadOfNative?: string;
}

/**
 * Opens a session: natively, or as WebAssembly if the data say so. WebAssembly also replaces an `onnxruntime-node` that
 * cannot be loaded, if `onnxruntime-web` is installed and the CPU may run the model.
 *
 * @throws TritonError UNAVAILABLE when the package is not installed; otherwise see {@link createSession} and
 * {@link createWasmSession}
 */
export async function openSessionOf(
  given: SessionData,
  warn: (message: string) => void,
): Promise<OpenSession> {
  const { content, defaults } = await takeDefaults(given);
  const data = content === undefined ? given : { ...given, content };
  let insteadOfNative: string | undefined;
  if (!data.isWasm) {
    try {
      return { ...(await createSession(await importOnnxRuntime(), data, warn)), defaults };
    } catch (error) {
      if (!TritonError.is(error) || error.reason !== "PACKAGE_NOT_INSTALLED") throw error;
      if (!hasOrtWeb() || (data.strict && providerName(data.providers[0]!) !== "cpu")) throw error;
      insteadOfNative = error.message.split("\n")[0]!;
    }
  }
  const ort = await importOrtWeb(Number(data.sessionOptions.intraOpNumThreads));
  const session = await createWasmSession(ort, data);
  return { session, provider: "wasm", defaults, ...(insteadOfNative !== undefined && { insteadOfNative }) };
}

/**
 * Opens a session on the first provider that works. ONNX Runtime's Node binding rejects a list of providers when the
 * first is missing. So this function tries one provider at a time and calls `warn` before each fallback.
 *
 * @throws TritonError with ONNX Runtime's words when no provider works, or with `strict` when the first does not.
 */
export async function createSession(
  ort: Ort,
  data: SessionData,
  warn: (message: string) => void,
): Promise<Omit<OpenSession, "defaults">> {
  const providers = providersForWorker(data.providers);
  const chain = data.strict ? providers.slice(0, 1) : withCpu(providers);
  let failure: unknown;
  for (const [i, provider] of chain.entries()) {
    try {
      return { session: await openWith(ort, data, provider), provider: providerName(provider) };
    } catch (error) {
      failure = error;
      const next = chain[i + 1];
      if (next !== undefined) {
        const { advice } = await import("./native/gpu-doctor.js");
        warn(
          `execution provider '${providerName(provider)}' cannot be used: ${messageOf(error)}${advice(providerName(provider), undefined)}; trying '${providerName(next)}'`,
        );
      }
    }
  }
  const label = modelLabel(data.model);
  throw errorFor("INVALID_MODEL", `cannot load the ONNX model ${label}: ${messageOf(failure)}`, {
    cause: failure,
  });
}

async function openWith(ort: Ort, data: SessionData, provider: ExecutionProvider): Promise<InferenceSession> {
  if (providerName(provider) === "webgpu" && !isMainThread) {
    const text = "it crashes when two threads of a process use it: set isolation 'process' for the instance";
    throw errorFor("PLATFORM_NOT_SUPPORTED", text);
  }
  const { model, content, sessionOptions } = data;
  const extra = { ...(sessionOptions.extra as object), ...externalDataEntry(model, content) };
  const options = { ...sessionOptions, extra, executionProviders: [provider] };
  return openOrt(ort, content ?? model, options as InferenceSession.SessionOptions);
}

function openOrt(ort: Ort, model: string | Uint8Array, options: InferenceSession.SessionOptions) {
  return typeof model === "string"
    ? ort.InferenceSession.create(model, options)
    : ort.InferenceSession.create(model, options);
}

function withCpu(providers: readonly ExecutionProvider[]): readonly ExecutionProvider[] {
  return providers.some((provider) => providerName(provider) === "cpu") ? providers : [...providers, "cpu"];
}

export function providerName(provider: ExecutionProvider): string {
  return canonicalName(typeof provider === "string" ? provider : provider.name);
}

function messageOf(error: unknown): string {
  return TritonError.from(error).message.split("\n")[0]!;
}

/** Providers that run on GPUs and take the number of the GPU. */
const NUMBERED: ReadonlySet<string> = new Set([
  "cuda",
  "tensorrt",
  "nvtensorrtrtx",
  "rocm",
  "migraphx",
  "dml",
]);

/**
 * The providers to try for an instance, in order: the requested ones; by default `cuda` for an instance on a GPU and
 * `cpu` for any other.
 */
export function providersFor(
  { kind, id }: DeviceId,
  given: readonly ExecutionProvider[] | undefined,
): readonly ExecutionProvider[] {
  const providers = given ?? (kind === "KIND_GPU" ? ["cuda", "cpu"] : ["cpu"]);
  if (kind !== "KIND_GPU") return providers;
  return providers.map((provider) => {
    const options = typeof provider === "string" ? { name: provider } : provider;
    if (!NUMBERED.has(canonicalName(options.name)) || Object.hasOwn(options, "device_id")) return provider;
    return { deviceId: id, ...options };
  });
}

/** Whether an instance needs a process of its own. WebGPU crashes when two threads of a process use it. */
export function needsProcess(providers: readonly ExecutionProvider[]): boolean {
  return providers.some((provider) => providerName(provider) === "webgpu");
}

type SessionSettings = Omit<
  OnnxRuntimeOptions,
  "model" | "engine" | "executionProviders" | "strictProviders" | "onWarning" | keyof NativeOptions
>;

/** ONNX Runtime also throws the errors that it writes. Its warnings concern graphs, not faults. */
const FATAL_ALONE = 4;

/**
 * Converts the options to the form that `onnxruntime-node` takes.
 *
 * @param instanceCount sessions that share the processors
 */
export function sessionOptions(
  settings: SessionSettings,
  instanceCount: number,
): Readonly<Record<string, unknown>> {
  const { sessionConfig, intraOpNumThreads, logSeverityLevel, ...others } = settings;
  return {
    ...definedMembers(others),
    intraOpNumThreads: intraOpNumThreads ?? Math.max(1, Math.floor(availableParallelism() / instanceCount)),
    logSeverityLevel: logSeverityLevel ?? FATAL_ALONE,
    extra: { ...DEFAULT_ENTRIES, ...sessionConfig },
  };
}

/**
 * Makes idle threads sleep. By default they spin and take the processor from the event loop and from other sessions.
 */
const DEFAULT_ENTRIES: Readonly<Record<string, string>> = { "session.intra_op.allow_spinning": "0" };

type Ort = typeof import("onnxruntime-node");

/**
 * Loads `onnxruntime-node`.
 *
 * @throws TritonError UNAVAILABLE when it is not installed, or does not load on this machine
 */
export async function importOnnxRuntime(): Promise<Ort> {
  disableTelemetry();
  try {
    return await importPeer<Ort>("onnxruntime-node", import.meta.url);
  } catch (error) {
    const text = `cannot load onnxruntime-node (${TritonError.from(error).message}): install it next to @tritonjs/backends`;
    throw errorFor("PACKAGE_NOT_INSTALLED", text, { cause: error });
  }
}

/** Entry of workers that run an ONNX model, one session in each worker. */
export async function load(data: unknown, info: InstanceInfo, host: WorkerHost): Promise<WorkerModel> {
  return (await open(data, host)).load(info);
}

export const prepare = importOnnxRuntime;

/** Opens the session, whose tensors complete the configuration. */
export async function open(
  data: unknown,
  { warn, report }: Pick<WorkerHost, "warn" | "report">,
): Promise<OpenModel> {
  const { session, provider, defaults, insteadOfNative } = await openSessionOf(data as SessionData, warn);
  const isWasm = provider === "wasm";
  const close = () => session.release();
  return {
    description: sessionTensors(session),
    load: ({ modelConfig }) => {
      const outputsFor = neededOutputs(modelConfig);
      const scalars = scalarInputs(data as SessionData, modelConfig);
      const shaped = scalarOutputs(modelConfig);
      if (insteadOfNative !== undefined) report(insteadOfNative);
      const run = async (inputs: Tensors, requested: readonly string[]): Promise<Tensors> => {
        const feeds = toFeeds(withDefaults(inputs, defaults), scalars);
        return shaped(fromResults(await session.run(feeds, outputsFor(requested))));
      };
      return {
        ownsOutputs: true,
        details: { executionProvider: provider, ...(isWasm && { engine: "wasm" }) },
        execute: (batch) => execute(isWasm ? endingWhenBroken(run) : run, batch),
        close,
      };
    },
    close,
  };
}

/** Describes the model for a synchronous `bind`: ONNX Runtime infers the shapes that the file leaves out. */
export async function describe(data: unknown): Promise<ModelDescription> {
  const opened = await open(data, { warn: () => {}, report: () => {} });
  await opened.close();
  return describeOnnxModel((data as SessionData).model, opened.description as SessionTensors | undefined);
}

/**
 * A run that ends the worker when WebAssembly fails instead of the model: its memory is then used up or broken, and only
 * a new worker has another.
 */
function endingWhenBroken(
  run: (inputs: Tensors, requested: readonly string[]) => Promise<Tensors>,
): typeof run {
  return async (inputs, requested) => {
    try {
      return await run(inputs, requested);
    } catch (error) {
      if (!isBroken(error)) throw error;
      const [why] = TritonError.from(error).message.split("\n");
      const text = `WebAssembly stopped: ${why}; it has 4 GB of memory: use smaller batches, or the engine 'worker'`;
      setImmediate(() => {
        throw errorFor("WORKER_CRASHED", text);
      });
      // The death of the worker fails the batch.
      return new Promise(() => {});
    }
  };
}

async function execute(
  run: (inputs: Tensors, requested: readonly string[]) => Promise<Tensors>,
  { inputs, indivisible, rows, requestedOutputs }: WorkerBatch,
): Promise<WorkerResult> {
  try {
    return { merged: await run(inputs, requestedOutputs) };
  } catch (error) {
    if (!TritonError.is(error) || rows.length === 1 || indivisible) throw error;
  }
  // One request holds text that ONNX Runtime cannot take. The other requests must not fail with it.
  const separate: (Tensors | TritonError)[] = [];
  for (const part of splitOutputs(inputs, rows)) {
    separate.push(await run(part, requestedOutputs).catch((error) => TritonError.from(error)));
  }
  return { separate };
}

/** Outputs that a batch can have: those of the configuration, and the states of sequences. */
export function outputNamesOf({
  output,
  sequenceBatching,
}: Pick<ModelConfig, "output" | "sequenceBatching">): readonly string[] {
  // The file may have more outputs than the model was bound with.
  return [...new Set([...output.map(({ name }) => name), ...sequenceTensors(sequenceBatching).outputs])];
}

/**
 * Chooses the outputs of a batch: those that its requests ask for, none for all, and the states of sequences.
 *
 * @param config configuration of the model
 */
export function neededOutputs(config: ModelConfig): (requested: readonly string[]) => readonly string[] {
  const all = outputNamesOf(config);
  const states = new Set(sequenceTensors(config.sequenceBatching).outputs);
  return (requested) =>
    requested.length === 0 ? all : all.filter((name) => requested.includes(name) || states.has(name));
}

/*
 * The engine `wasm`: ONNX Runtime compiled to WebAssembly, by `onnxruntime-web` or the build of it
 * in `@tritonjs/onnxruntime-wasm`. It has the interface of
 * `onnxruntime-node`, so sessions are used alike. The differences: threads belong to the runtime and not to a
 * session, files are read by JavaScript, and memory ends at 4 GB.
 */

/** The part of `onnxruntime-web` that is used. */
interface OrtWeb {
  readonly env: { readonly wasm: { numThreads?: number; proxy?: boolean } };
  readonly InferenceSession: {
    create(model: Uint8Array, options: object): Promise<InferenceSession>;
  };
}

/** Packages with ONNX Runtime as WebAssembly: all its builds, or the one that is needed. */
const ORT_WEB = ["onnxruntime-web", "@tritonjs/onnxruntime-wasm"] as const;

/** The package that is installed next to this package or to the program, if there is one. */
function installedOrtWeb(): (typeof ORT_WEB)[number] | undefined {
  return ORT_WEB.find((name) => findInstalled(name, import.meta.url) !== undefined);
}

/** True if a package with ONNX Runtime as WebAssembly is installed next to this package or to the program. */
function hasOrtWeb(): boolean {
  return installedOrtWeb() !== undefined;
}

/**
 * Loads ONNX Runtime as WebAssembly.
 *
 * @param threads threads of an operator. All sessions of a thread of JavaScript share those of the first session
 * @throws TritonError UNAVAILABLE if no package with it is installed, UNSUPPORTED without WebAssembly or SIMD
 */
async function importOrtWeb(threads: number): Promise<OrtWeb> {
  refuseWithoutSimd();
  const name = installedOrtWeb() ?? "@tritonjs/onnxruntime-wasm";
  let ort: OrtWeb;
  try {
    ort = await importPeer<OrtWeb>(name, import.meta.url);
  } catch (error) {
    const text = `cannot load ${name} (${TritonError.from(error).message}): install it next to @tritonjs/backends`;
    throw errorFor("PACKAGE_NOT_INSTALLED", text, { cause: error });
  }
  // Threads of WebAssembly share memory, which some hosts do not have.
  ort.env.wasm.numThreads = typeof SharedArrayBuffer === "undefined" ? 1 : threads;
  ort.env.wasm.proxy = false;
  return ort;
}

/**
 * Opens a session of ONNX Runtime as WebAssembly.
 *
 * @throws TritonError INVALID_ARG with ONNX Runtime's words for a model that does not load, UNSUPPORTED for a model
 * that needs more than the 4 GB that WebAssembly can address
 */
async function createWasmSession(ort: OrtWeb, data: SessionData): Promise<InferenceSession> {
  const label = modelLabel(data.model);
  try {
    const { bytes, externalData } = await readModel(data.model, label);
    return await ort.InferenceSession.create(data.content ?? bytes, {
      ...data.sessionOptions,
      ...(externalData.length > 0 && { externalData }),
      executionProviders: ["wasm"],
    });
  } catch (cause) {
    const [why] = TritonError.from(cause).message.split("\n");
    if (TritonError.is(cause)) throw cause;
    if (isOutOfMemory(cause)) throw tooLarge(label, why!, cause);
    throw errorFor("INVALID_MODEL", `cannot load the ONNX model ${label}: ${why}`, { cause });
  }
}

/**
 * Reads the model and the files of its weights: WebAssembly opens no files.
 *
 * @throws TritonError UNSUPPORTED if they have more bytes than WebAssembly can address
 */
async function readModel(model: string | Uint8Array, label: string) {
  if (typeof model !== "string") return { bytes: model, externalData: [] };
  const external = [...externalLocations(model)].map((path) => ({
    path,
    file: join(dirname(model), path),
  }));
  let total = 0;
  for (const file of [model, ...external.map((one) => one.file)]) total += (await stat(file)).size;
  if (total >= MOST_BYTES) throw tooLarge(label, `files of ${total} bytes`);
  const [bytes, ...contents] = await Promise.all(
    [model, ...external.map(({ file }) => file)].map((file) => readFile(file)),
  );
  return { bytes: bytes!, externalData: external.map(({ path }, i) => ({ path, data: contents[i]! })) };
}
