import { existsSync, statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Backend, BackendFactory, ModelDescription, ModelFiles } from "@tritonjs/core/backend";
import { findModelFile, hostingOf, workerExecutor } from "@tritonjs/core/backend";
import {
  type AskedModel,
  askWorker,
  DeclaredParameters,
  type DeviceId,
  notFound,
  wrongParameter,
} from "@tritonjs/core/internal";

import { assertOptions, definedMembers, errorFor, type Isolation } from "@tritonjs/protocol";
import { emptyConfig } from "@tritonjs/protocol/config";
import { describeInWorker, readFileInThread } from "../description/describe-in-worker.js";
import { read } from "./quick-description.js";
import {
  findRuntime,
  isNative,
  openRuntime,
  TENSORFLOW_OPTION_TYPES,
  TENSORFLOW_RUNTIMES,
  type TensorflowOptions,
  type TensorflowRuntime,
  type Tf,
} from "./tensorflow-runtime.js";
import type { TensorflowData, TensorflowFormat } from "./tensorflow-worker.js";

export type { TensorflowOptions } from "./tensorflow-runtime.js";

/**
 * A backend that runs a TensorFlow.js model (GraphModel or LayersModel), a SavedModel, a frozen graph or a file of Keras
 * (`.keras`, `.h5`), each instance in a worker thread of its own. Inputs, outputs and whether the model can batch (all first dimensions variable) come from its
 * signature or its layers when `bind` does not get them.
 *
 * @throws TritonError at `bind` for a missing file (NOT_FOUND), a file that is not a model (INVALID_ARG), and when no
 * runtime for it is installed (UNAVAILABLE).
 * @example
 * ```ts
 * triton.bind({ modelName: "digits", inferFunc: tensorflow({ model: "digits/model.json" }) });
 * ```
 */
export function tensorflow(options: TensorflowOptions): Backend {
  assertOptions("tensorflow()", options, TENSORFLOW_OPTION_TYPES, {}, ["model"]);
  const path = options.model instanceof URL ? fileURLToPath(options.model) : options.model;
  return tensorflowIn(path, dirname(path), options);
}

const DEFAULT_SIGNATURE = "serving_default";

const READER = new URL("./quick-description.js", import.meta.url);
const WORKER = new URL("./tensorflow-worker.js", import.meta.url);

/** The same backend for a model whose files must all be inside a directory. */
function tensorflowIn(path: string, directory: string, options: Omit<TensorflowOptions, "model">): Backend {
  return {
    backendName: "tensorflow",
    platform: PLATFORMS[formatOf(path)],
    isolations: ["worker", "process"],
    describe: () => describeModelSync(modelData(path, directory, options, false)),
    createExecutor: (context) => {
      const data = modelData(path, directory, options, context.placement.kind === "KIND_GPU");
      const interruptible = !isNative(data.runtime);
      return workerExecutor({ entry: WORKER, data, interruptible, tensorsOnly: true }, context);
    },
  };
}

/**
 * The data that a worker opens.
 *
 * @throws TritonError NOT_FOUND for a missing file, UNAVAILABLE when no runtime for it is installed.
 */
function modelData(
  path: string,
  directory: string,
  { runtime, signature = DEFAULT_SIGNATURE, outputs }: Omit<TensorflowOptions, "model">,
  onGpu: boolean,
): TensorflowData {
  if (!existsSync(path))
    throw errorFor("MODEL_FILES_NOT_FOUND", `cannot find the TensorFlow model '${path}'`);
  return {
    path,
    format: formatOf(path),
    directory,
    signature,
    outputs,
    runtime: findRuntime({ runtime, onGpu }),
  };
}

const PLATFORMS: Readonly<Record<TensorflowFormat, string>> = {
  json: "tensorflow_tfjs",
  saved_model: "tensorflow_savedmodel",
  frozen_graph: "tensorflow_graphdef",
  keras: "tensorflow_tfjs",
};

function formatOf(path: string): TensorflowFormat {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return "saved_model";
  if (/\.(keras|h5|hdf5)$/.test(path)) return "keras";
  return /\.(pb|graphdef)$/.test(path) ? "frozen_graph" : "json";
}

/**
 * Loads TensorFlow.js on the device of an instance, for a callback that uses it: `@tensorflow/tfjs-node-gpu` on a GPU.
 * On the CPU it is the first that is installed of `@tensorflow/tfjs-node`, and the backends `wasm` and `cpu` of
 * `@tensorflow/tfjs`. A thread loads it once.
 *
 * @param instance the context of a callback, or the argument of `initialize`
 * @throws TritonError UNAVAILABLE when no runtime for the device is installed, or it does not load; INVALID_ARG for a
 * `runtime` that cannot run there, and for a second GPU in one process: such instances need isolation `process`.
 * @example
 * ```ts
 * export default batch(async ({ x }, context) => {
 *   const tf = await openTensorflow(context);
 *   return { y: await tf.tensor(x.data, x.shape).square().data() };
 * });
 * ```
 */
export async function openTensorflow(
  { device }: { readonly device: DeviceId },
  { runtime }: { readonly runtime?: TensorflowRuntime } = {},
): Promise<Tf> {
  const onGpu = device.kind === "KIND_GPU";
  return openRuntime(findRuntime({ runtime, onGpu }), onGpu ? device.id : undefined);
}

/**
 * The backend of a file outside of a repository. Where its `model.json` says all, describing it needs no TensorFlow.js.
 *
 * @internal
 */
export function tensorflowFile(path: string): Backend {
  const backend = tensorflow({ model: path });
  return {
    ...backend,
    describe: () =>
      read({ path, format: formatOf(path), signature: DEFAULT_SIGNATURE }) ?? backend.describe(),
  };
}

const ISOLATIONS: readonly Isolation[] = ["worker", "process"];

const PARAMETERS = new DeclaredParameters({ value: ["TF_SIGNATURE_DEF", "runtime"] });

/**
 * The backend `tensorflow` for models of a repository: `<version>/model.json` of TensorFlow.js, the frozen graph
 * `<version>/model.graphdef`, `<version>/model.keras` or `model.h5` of Keras, or the directory `<version>/model.savedmodel`, which contains a SavedModel or a
 * `model.json`. The parameters of the configuration are
 * Triton's `TF_SIGNATURE_DEF`, and `runtime`.
 */
const tensorflowBackend = PARAMETERS.declaredBy(async (source) => {
  const { name, directory, config } = source;
  const path = await modelPath(source);
  const options = optionsOf(source);
  const onGpu = config.instanceGroup.some(({ kind }) => kind === "KIND_GPU");
  const data = modelData(path, directory, options, onGpu);
  const hosting = hostingOf(source, ISOLATIONS, isNative(data.runtime));
  const description = await describeModel(data, name);
  return {
    ...tensorflowIn(path, directory, { ...options, runtime: data.runtime }),
    hosting,
    describe: () => description,
  };
});

async function modelPath(source: ModelFiles): Promise<string> {
  const { path, isDirectory } = await findModelFile(source, [
    "model.json",
    "model.savedmodel",
    "model.graphdef",
    "model.keras",
    "model.h5",
  ]);
  if (!isDirectory) return path;
  const has = (file: string) =>
    stat(join(path, file)).then(
      () => true,
      () => false,
    );
  if (await has("saved_model.pb")) return path;
  if (await has("model.json")) return join(path, "model.json");
  throw notFound(join(path, "saved_model.pb"), source.name);
}

function optionsOf({ name, config }: ModelFiles): Omit<TensorflowOptions, "model"> {
  const signature = PARAMETERS.text({ config }, "TF_SIGNATURE_DEF");
  const runtime = PARAMETERS.text({ config }, "runtime");
  if (runtime !== undefined && !TENSORFLOW_RUNTIMES.includes(runtime as TensorflowRuntime)) {
    throw wrongParameter(name, "runtime", `one of ${TENSORFLOW_RUNTIMES.join(", ")}`, runtime);
  }
  const { output } = config;
  const outputs = output.length === 0 ? undefined : output.map((one) => one.name);
  return definedMembers({ signature, outputs, runtime: runtime as TensorflowRuntime | undefined });
}

/**
 * Describes a model, in a worker if that needs TensorFlow.
 *
 * @throws TritonError that describes the fault of the model
 */
async function describeModel(data: TensorflowData, modelName: string): Promise<ModelDescription> {
  const { path, format, signature, outputs } = data;
  const asked = { path, format, signature, outputs };
  const { size: bytes } = await stat(format === "saved_model" ? join(path, "saved_model.pb") : path);
  const file = { what: `the TensorFlow model '${path}'`, bytes, entry: READER, data: asked };
  const quick = await readFileInThread(file, () => read(asked));
  if (quick !== undefined) return quick;
  const model: AskedModel = {
    name: modelName,
    version: 1,
    config: { ...emptyConfig(), name: modelName },
    warn: (message) => process.emitWarning(message, "TritonWarning"),
  };
  return askWorker<ModelDescription>({ entry: WORKER, data, interruptible: true }, model, "description");
}

/** A worker that does not answer within this time is ended. */
const DESCRIBE_WITHIN_MS = 120_000;

/** Describes a model for the synchronous `bind`. This thread blocks meanwhile, as it does to read a file. */
function describeModelSync(data: TensorflowData): ModelDescription {
  const quick = read(data);
  if (quick !== undefined) return quick;
  return describeInWorker(WORKER, data, DESCRIBE_WITHIN_MS, `the TensorFlow model '${data.path}'`);
}

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = { tensorflow: tensorflowBackend };
