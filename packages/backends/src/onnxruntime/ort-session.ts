import { availableParallelism } from "node:os";
import { isMainThread } from "node:worker_threads";
import type {
  ModelDescription,
  WorkerBatch,
  WorkerHost,
  WorkerModel,
  WorkerResult,
} from "@tritonjs/core/backend";
import type { InstanceDevice, InstanceInfo, OpenModel, Tensors } from "@tritonjs/core/internal";
import { disableTelemetry, importPeer, sequenceTensors, splitOutputs } from "@tritonjs/core/internal/worker";
import {
  DATA_TYPES,
  type DataType,
  definedMembers,
  type Elements,
  errorFor,
  type ModelConfig,
  type ModelInput,
  Tensor,
  TritonError,
  toOrtType,
} from "@tritonjs/protocol";
import type { InferenceSession, Tensor as OrtTensor } from "onnxruntime-node";
import { describeOnnxModel, type SessionTensor, type SessionTensors } from "./describe-onnx-model.js";
import { modelLabel } from "./onnx-file.js";
import {
  type NativeOptions,
  type OnnxRuntimeOptions,
  providersForWorker,
  type SessionData,
} from "./onnx-options.js";
import { canonicalName, type ExecutionProvider } from "./provider-names.js";

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
): Promise<{ readonly session: InferenceSession; readonly provider: string }> {
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
        warn(
          `execution provider '${providerName(provider)}' cannot be used: ${messageOf(error)}; trying '${providerName(next)}'`,
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
  const options = {
    ...data.sessionOptions,
    executionProviders: [provider],
  } as InferenceSession.SessionOptions;
  return typeof data.model === "string"
    ? ort.InferenceSession.create(data.model, options)
    : ort.InferenceSession.create(data.model, options);
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
  { kind, id }: InstanceDevice,
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
export async function open(data: unknown, { warn }: Pick<WorkerHost, "warn">): Promise<OpenModel> {
  const ort = await importOnnxRuntime();
  const { session, provider } = await createSession(ort, data as SessionData, warn);
  const close = () => session.release();
  return {
    description: sessionTensors(session),
    load: ({ modelConfig }) => {
      const outputNames = outputNamesOf(modelConfig);
      const scalars = scalarInputs(data as SessionData, modelConfig);
      const shaped = scalarOutputs(modelConfig);
      const run = async (inputs: Tensors): Promise<Tensors> =>
        shaped(fromResults(await session.run(toFeeds(inputs, scalars), outputNames)));
      return {
        ownsOutputs: true,
        details: { executionProvider: provider },
        execute: (batch) => execute(run, batch),
        close,
      };
    },
    close,
  };
}

/** Describes the model for a synchronous `bind`: ONNX Runtime infers the shapes that the file leaves out. */
export async function describe(data: unknown): Promise<ModelDescription> {
  const opened = await open(data, { warn: () => {} });
  await opened.close();
  return describeOnnxModel((data as SessionData).model, opened.description as SessionTensors | undefined);
}

async function execute(
  run: (inputs: Tensors) => Promise<Tensors>,
  { inputs, indivisible, rows }: WorkerBatch,
): Promise<WorkerResult> {
  try {
    return { merged: await run(inputs) };
  } catch (error) {
    if (!TritonError.is(error) || rows.length === 1 || indivisible) throw error;
  }
  // One request holds text that ONNX Runtime cannot take. The other requests must not fail with it.
  const separate: (Tensors | TritonError)[] = [];
  for (const part of splitOutputs(inputs, rows)) {
    separate.push(await run(part).catch((error) => TritonError.from(error)));
  }
  return { separate };
}

const FROM_ORT = new Map(DATA_TYPES.map((datatype) => [toOrtType(datatype), datatype]));

const decoder = new TextDecoder("utf-8", { fatal: true });
const encoder = new TextEncoder();

/**
 * Converts inputs to the form that `session.run` takes. They are plain objects, because the `Tensor` constructor
 * rejects float16 on newer versions of Node.
 *
 * @param scalars names of inputs without dimensions in the model's file: a configuration has to give them one
 * @throws TritonError INVALID_ARG for text that ONNX Runtime cannot hold.
 */
export function toFeeds(inputs: Tensors, scalars: ReadonlySet<string>): Record<string, OrtTensor> {
  const feeds: Record<string, unknown> = {};
  for (const [name, tensor] of inputs) {
    feeds[name] = {
      type: toOrtType(tensor.datatype),
      dims: scalars.has(name) ? [] : tensor.shape,
      data: tensor.datatype === "BYTES" ? toStrings(name, tensor.elements as Uint8Array[]) : tensor.elements,
      location: "cpu",
    };
  }
  return feeds as Record<string, OrtTensor>;
}

function toStrings(name: string, elements: readonly Uint8Array[]): string[] {
  return elements.map((element, i) => {
    if (element.includes(0))
      throw unfit(name, i, "it contains a NUL byte, which ends a string of ONNX Runtime");
    try {
      return decoder.decode(element);
    } catch {
      throw unfit(name, i, "it is not UTF-8, which strings of ONNX Runtime must be");
    }
  });
}

function unfit(name: string, index: number, why: string): TritonError {
  const text = `cannot pass element ${index} of input '${name}' as an ONNX string: ${why}`;
  return errorFor("INVALID_INPUT", text);
}

/** Converts the session's results to tensors over the same memory. */
export function fromResults(results: Readonly<Record<string, OrtTensor>>): Map<string, Tensor> {
  return new Map(
    Object.entries(results).map(([name, { type, dims, data }]) => {
      const datatype = FROM_ORT.get(type);
      if (datatype === undefined) {
        const text = `output '${name}' has type ${type}, which the protocol cannot carry`;
        throw errorFor("MODEL_NOT_SUPPORTED", text);
      }
      return [name, Tensor.fromElements(datatype, [...dims], toElements(datatype, data))];
    }),
  );
}

function toElements(datatype: DataType, data: OrtTensor["data"]): Elements {
  if (datatype === "BYTES") return (data as string[]).map((text) => encoder.encode(text));
  // Newer versions of Node have a Float16Array. Here the elements of FP16 are their bits.
  if (datatype === "FP16" && ArrayBuffer.isView(data) && !(data instanceof Uint16Array)) {
    return new Uint16Array(data.buffer, data.byteOffset, data.byteLength / 2);
  }
  return data as Elements;
}

/** The tensors of a session; undefined with versions of onnxruntime-node that do not provide shapes. */
export function sessionTensors({
  inputMetadata,
  outputMetadata,
}: InferenceSession): SessionTensors | undefined {
  if (!Array.isArray(inputMetadata) || !Array.isArray(outputMetadata)) return undefined;
  return { inputs: inputMetadata.flatMap(toTensor), outputs: outputMetadata.flatMap(toTensor) };
}

function toTensor(value: InferenceSession.ValueMetadata): SessionTensor[] {
  if (!value.isTensor) return [];
  const shape = value.shape.map((dim) => (typeof dim === "number" ? dim : -1));
  return [{ name: value.name, dtype: FROM_ORT.get(value.type), shape }];
}

/** The shape of a tensor inside the model. */
function shapeOf({ dims, reshape }: Pick<ModelInput, "dims" | "reshape">): readonly number[] {
  return reshape?.shape ?? dims;
}

/**
 * Names of inputs that the session gets without dimensions. An input of unknown rank is a scalar if its configuration
 * has a single element, as in Triton's onnxruntime backend.
 */
export function scalarInputs(
  { scalars, ranksUnknown }: Pick<SessionData, "scalars" | "ranksUnknown">,
  { maxBatchSize, input }: Pick<ModelConfig, "maxBatchSize" | "input">,
): ReadonlySet<string> {
  const single = input.filter((one) => maxBatchSize === 0 && shapeOf(one).every((dim) => dim === 1));
  const names = single.map(({ name }) => name).filter((name) => ranksUnknown.includes(name));
  return new Set([...scalars, ...names]);
}

/**
 * Gives scalar outputs the dimensions of the configuration, `[1]`, as Triton's onnxruntime backend does. A
 * configuration cannot have a tensor without dimensions.
 */
export function scalarOutputs({
  maxBatchSize,
  output,
}: Pick<ModelConfig, "maxBatchSize" | "output">): (outputs: Map<string, Tensor>) => Map<string, Tensor> {
  if (maxBatchSize > 0) return (outputs) => outputs;
  const shapes = new Map(output.map((one) => [one.name, shapeOf(one)]));
  return (outputs) => {
    for (const [name, tensor] of outputs) {
      if (tensor.shape.length > 0) continue;
      const shape = shapes.get(name) ?? [];
      if (shape.every((dim) => dim === 1)) outputs.set(name, tensor.reshaped(shape));
    }
    return outputs;
  };
}

/** Outputs that the model has to compute: those of the configuration, and the states of sequences. */
export function outputNamesOf({
  output,
  sequenceBatching,
}: Pick<ModelConfig, "output" | "sequenceBatching">): readonly string[] {
  // The file may have more outputs than the model was bound with.
  return [...new Set([...output.map(({ name }) => name), ...sequenceTensors(sequenceBatching).outputs])];
}
