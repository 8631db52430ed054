import { stat } from "node:fs/promises";
import { join, normalize } from "node:path";
import type { BackendFactory } from "@tritonjs/core/backend";
import { exists, SHARED_PARAMETERS } from "@tritonjs/core/internal";
import { importInstalled, isInside } from "@tritonjs/core/internal/worker";
import { errorFor, type ModelConfig, type TritonError } from "@tritonjs/protocol";
import { javascriptBackend, moduleBackend } from "./javascript-backend.js";
import { identityBackend, repeatBackend, squareBackend } from "./testing-backends.js";

export const BUILT_IN: Readonly<Record<string, BackendFactory>> = {
  javascript: javascriptBackend,
  identity: identityBackend,
  repeat: repeatBackend,
  square: squareBackend,
};

/** A backend of a package: the module that has it, and the packages that it needs. */
interface PackagedBackend {
  readonly entry: string;
  readonly install: string;
}

const packagedIn = (folder: string, peers = ""): PackagedBackend => ({
  entry: `@tritonjs/backends/${folder}`,
  install: `@tritonjs/backends${peers}`,
});

/** Backends of packages, which are loaded when the first model names them. */
export const PACKAGED: Readonly<Record<string, PackagedBackend>> = {
  onnxruntime: packagedIn("onnxruntime", " onnxruntime-node"),
  openvino: packagedIn("onnxruntime", " onnxruntime-node"),
  python: packagedIn("python"),
  pytorch: packagedIn("python"),
  tensorflow: packagedIn("tensorflow", " @tensorflow/tfjs"),
  fil: packagedIn("trees"),
  image: packagedIn("media", " sharp"),
  audio: packagedIn("media"),
  ctc_decoder: packagedIn("media"),
  remote: packagedIn("remote", " @tritonjs/client"),
  tokenizer: { entry: "@tritonjs/llm", install: "@tritonjs/llm" },
  text_generation: { entry: "@tritonjs/llm", install: "@tritonjs/llm" },
  llamacpp: { entry: "@tritonjs/llm", install: "@tritonjs/llm node-llama-cpp" },
};

/** Backends that also have the settings of another one, which runs their models. */
const RUN_BY: Readonly<Record<string, string>> = { pytorch: "python", openvino: "onnxruntime" };

/** Backends that may run a file `model.py` of a model, which `runtime` requests. */
const WITH_PYTHON_RUNTIME: readonly string[] = ["pytorch"];

/** Backend of a configuration that has only a platform. */
export const BY_PLATFORM: Readonly<Record<string, string>> = {
  onnxruntime_onnx: "onnxruntime",
  tensorflow_graphdef: "tensorflow",
  tensorflow_savedmodel: "tensorflow",
  tensorflow_tfjs: "tensorflow",
  tensorrt_plan: "tensorrt",
  pytorch_libtorch: "pytorch",
  libtorch: "pytorch",
  torch_aoti: "pytorch",
  caffe2_netdef: "caffe2",
};

/** How to run models of Triton's other backends here. */
export const CONVERSIONS: Readonly<Record<string, string>> = {
  tensorrt:
    "a plan runs only in TensorRT; put the ONNX file that it was built from (trtexec --onnx=<file>) into the version " +
    "directory as model.onnx, use backend 'onnxruntime' without a platform, and for TensorRT's kernels " +
    'optimization { execution_accelerators { gpu_execution_accelerator [ { name: "tensorrt" } ] } }',
  dali:
    "write its steps for the backend 'image' of @tritonjs/backends/media into a file beside model.dali, and name it in the " +
    "option substitutes (--substitute), or prepare the data in a JavaScript model, as a step of an ensemble",
  vllm:
    "copy the folder src of vLLM's backend (github.com/triton-inference-server/vllm_backend) to <backend directory>/vllm " +
    "and set backendDirectory (--backend-directory), or run 'vllm serve <model>' and call it from a JavaScript model",
  tensorrtllm: "run 'trtllm-serve <model>' and call it from a JavaScript model",
  mxnet: "export the model to ONNX with mxnet.onnx.export_model, and use backend 'onnxruntime'",
  inferentia:
    "a model that is compiled for Inferentia runs only there; export the network that it was compiled from to ONNX, and use " +
    "backend 'onnxruntime'",
  armnn_tflite:
    "convert the file to ONNX (python -m tf2onnx.convert --tflite <file>), and use backend 'onnxruntime'",
  paddle: "convert the model to ONNX (paddle2onnx --model_dir <directory>), and use backend 'onnxruntime'",
  caffe2: "export the network from PyTorch to ONNX, and use backend 'onnxruntime'",
};

/** The options that say where backends are, besides the tables of the library. */
interface BackendPlaces {
  /** Backends that the program registered; they come before those of the library. */
  readonly backends?: Readonly<Record<string, BackendFactory>>;
  /** Directory of backends that are programs. They come after those of the library, unless `runtime` names them. */
  readonly backendDirectory?: string | undefined;
}

interface FoundBackend {
  readonly factory: BackendFactory;
  /** The model's configuration, with the additions of the backend. */
  readonly config: ModelConfig;
  /** Another backend whose settings this one has too. */
  readonly inherits?: string | undefined;
}

interface BackendPackage {
  readonly repositoryBackends: Readonly<Record<string, BackendFactory>>;
}

interface PythonPackage extends BackendPackage {
  sharedBackend(path: string, backendName: string): BackendFactory;
}

/**
 * Finds the backend of a model: by `backend`, or by `platform` in Triton's words; and by `runtime`, which may require a
 * program of the backend directory.
 *
 * @throws TritonError INVALID_ARG for an unknown backend; the text says how to convert the model where that is
 * possible.
 */
export async function findBackend(
  config: ModelConfig,
  directory: string,
  version: number,
  { backends = {}, backendDirectory: root }: BackendPlaces,
): Promise<FoundBackend> {
  const { backend, platform, runtime } = config;
  const name = backend !== "" ? backend : (BY_PLATFORM[platform] ?? platform);
  const libraryPlaces = [
    join(directory, String(version)),
    directory,
    ...(root === undefined ? [] : [join(root, name)]),
  ];
  if (isProgram(runtime)) {
    const program = root === undefined ? undefined : await findProgram(root, name, runtime);
    if (program !== undefined) return fromProgram(name, config, program);
    if (runtime !== "model.py" || !WITH_PYTHON_RUNTIME.includes(name)) throw noProgram(name, config, root);
  } else if (runtime !== "" && runtime !== `libtriton_${name}.so`) {
    throw noLibrary(config, libraryPlaces);
  }
  const factory = own(backends, name) ?? own(BUILT_IN, name) ?? (await packaged(name, config.name));
  if (factory !== undefined) return { factory, config, inherits: own(RUN_BY, name) };
  if (runtime !== "") throw noLibrary(config, libraryPlaces);
  const program = root === undefined ? undefined : await findProgram(root, name, "");
  if (program !== undefined) return fromProgram(name, config, program);
  throw unknown(name, root !== undefined && (await hasSharedLibrary(root, name)));
}

async function fromProgram(
  name: string,
  config: ModelConfig,
  program: BackendProgram,
): Promise<FoundBackend> {
  return {
    factory: await sharedProgram(name, config.name, program),
    config: await configWithProgram(config, program),
    inherits: program.language,
  };
}

async function packaged(name: string, model: string): Promise<BackendFactory | undefined> {
  if (!Object.hasOwn(PACKAGED, name)) return undefined;
  const user = `the backend '${name}' of model '${model}'`;
  return (await loadBackend<BackendPackage>(name, user)).repositoryBackends[name]!;
}

/**
 * Loads the module of a backend that a package has.
 *
 * @param backend key of {@link PACKAGED}
 * @param user what needs it, for the error
 * @throws TritonError UNAVAILABLE if the package is not installed
 */
export async function loadBackend<M>(backend: string, user: string): Promise<M> {
  const { entry, install } = PACKAGED[backend]!;
  const found = await importInstalled<M>(entry, import.meta.url);
  if (found !== undefined) return found;
  throw errorFor("PACKAGE_NOT_INSTALLED", `${user} needs a package: npm install ${install}`);
}

function unknown(name: string, isLibrary: boolean): TritonError {
  const conversion = own(CONVERSIONS, name);
  const hint =
    conversion !== undefined
      ? ` There is none for '${name}' here: ${conversion}.`
      : isLibrary
        ? ` 'libtriton_${name}.so' is a shared library for tritonserver, which cannot be loaded here: write the backend as ` +
          "model.py or backend.js, or register it with new Triton({ backends })."
        : "";
  return invalid(
    `unable to find backend library for backend '${name}', try specifying runtime on the model configuration.${hint}`,
  );
}

/** The error for a program that `runtime` names and the backend directory does not have. */
function noProgram(
  name: string,
  { name: model, runtime }: ModelConfig,
  root: string | undefined,
): TritonError {
  const language = runtime === "model.py" ? "Python" : "JavaScript";
  const start = `unable to find ${language} backend based backend library '${runtime}' for model '${model}'`;
  return invalid(
    root === undefined
      ? `${start}: there is no backend directory; set backendDirectory (--backend-directory)`
      : `${start}, searched: '${join(root, name, runtime)}'`,
  );
}

/** The error for a shared library that `runtime` names. */
function noLibrary({ name, runtime }: ModelConfig, places: readonly string[]): TritonError {
  if (!isInside("/backend", join("/backend", normalize(runtime)))) {
    return invalid(
      `backend library name '${runtime}' escapes backend directory '${places.at(-1)}', for model '${name}', check ` +
        "model config runtime field",
    );
  }
  const searched = places.map((place) => `'${place}' `).join("");
  return invalid(`unable to find backend library '${runtime}' for model '${name}', searched: ${searched}`);
}

function invalid(text: string): TritonError {
  return errorFor("INVALID_CONFIG", text);
}

function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** A program of a backend directory that runs all models of its backend. */
interface BackendProgram {
  readonly language: "python" | "javascript";
  readonly directory: string;
  /** Name of the file in it, which `runtime` of a configuration may name. */
  readonly runtime: string;
  readonly path: string;
}

/** The files that make a directory a backend, in the order of the search. */
const PROGRAMS: readonly Pick<BackendProgram, "runtime" | "language">[] = [
  { runtime: "model.py", language: "python" },
  { runtime: "backend.js", language: "javascript" },
  { runtime: "backend.mjs", language: "javascript" },
  { runtime: "backend.ts", language: "javascript" },
];

/** True for a value of `runtime` that names a program of a backend directory. */
function isProgram(runtime: string): boolean {
  return PROGRAMS.some((program) => program.runtime === runtime);
}

/**
 * Finds the program of a backend: `<root>/<backend>/model.py`, or `backend.js`, `backend.mjs` or `backend.ts`.
 *
 * @param runtime the only file to look for; empty for any
 * @returns undefined without such a file, and for a name that is not the name of a directory
 */
async function findProgram(
  root: string,
  backend: string,
  runtime: string,
): Promise<BackendProgram | undefined> {
  if (!isDirectoryName(backend)) return undefined;
  const directory = join(root, backend);
  for (const program of PROGRAMS) {
    if (runtime !== "" && runtime !== program.runtime) continue;
    const path = join(directory, program.runtime);
    if (await isFile(path)) return { ...program, directory, path };
  }
  return undefined;
}

/** True if the directory has a backend for tritonserver alone: a shared library. */
async function hasSharedLibrary(root: string, backend: string): Promise<boolean> {
  return isDirectoryName(backend) && isFile(join(root, backend, `libtriton_${backend}.so`));
}

/** False for a name that leads to another directory, such as `../python`. */
function isDirectoryName(backend: string): boolean {
  return /^[^/\\\0]+$/.test(backend) && backend !== "." && backend !== "..";
}

function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}

/** The backend whose program its models share. Directories of models hold only data. */
async function sharedProgram(
  backendName: string,
  model: string,
  { language, path }: BackendProgram,
): Promise<BackendFactory> {
  if (language !== "python") {
    return SHARED_PARAMETERS.declaredBy((source) =>
      moduleBackend(source, { path, directory: source.versionDirectory, backendName }),
    );
  }
  const user = `the backend '${backendName}' of model '${model}'`;
  return (await loadBackend<PythonPackage>("python", user)).sharedBackend(path, backendName);
}

/** As in Triton, `runtime` names the program, and an archive `pb_exec_env_model.py.tar.gz` is its environment. */
async function configWithProgram(
  config: ModelConfig,
  { language, directory, runtime }: BackendProgram,
): Promise<ModelConfig> {
  const environment = join(directory, `pb_exec_env_${runtime}.tar.gz`);
  const isUsed =
    language === "python" &&
    config.parameters.EXECUTION_ENV_PATH === undefined &&
    (await exists(environment));
  const parameters = isUsed
    ? { ...config.parameters, EXECUTION_ENV_PATH: { stringValue: environment } }
    : config.parameters;
  return { ...config, runtime, parameters };
}
