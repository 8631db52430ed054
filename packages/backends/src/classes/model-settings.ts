import { rmSync } from "node:fs";
import { copyFile, link, mkdir, mkdtemp, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import {
  errorFor,
  isDataType,
  type TritonError,
  toConfigDataType,
  unknownDataTypeText,
} from "@tritonjs/protocol";
import type { ModelFormat } from "@tritonjs/repository";

/** A class in a file, as `--model` and `implementation` of a `model-settings.json` name it. */
interface ClassReference {
  /** Path of the module, as written. */
  readonly module: string;
  readonly className: string;
  readonly language: "javascript" | "python";
}

/**
 * Reads `module.js#Class`, `module.py#Class` and `module.py:Class`.
 *
 * @returns undefined for a text of another form
 */
export function parseClassReference(text: string): ClassReference | undefined {
  const [, module, className] =
    /^(.+\.(?:py|[cm]?js|m?ts))[#:]([\p{ID_Start}_$][\p{ID_Continue}$]*)$/u.exec(text) ?? [];
  if (module === undefined || className === undefined) return undefined;
  return { module, className, language: module.endsWith(".py") ? "python" : "javascript" };
}

/** File of a model of MLServer. */
const SETTINGS = "model-settings.json";

/** Sources of the layout of a model: the parts of its configuration, and the files of its version. */
interface LaidOut {
  readonly config: Readonly<Record<string, unknown>>;
  /** Paths of files to link, or texts to write, by their names in the version's directory. */
  readonly files: Readonly<Record<string, { readonly path: string } | { readonly text: string }>>;
}

/** A model while it is laid out. */
interface Settings {
  /** `model 'iris'`, for errors. */
  readonly what: string;
  readonly modelName: string;
  /** Folder that its paths are relative to. */
  readonly folder: string;
  readonly implementation: string;
  readonly uri: string | undefined;
  /** Names of its outputs, as written. */
  readonly outputs: readonly string[];
  readonly maxBatchSize: number;
}

/**
 * Reads models of MLServer: directories with a `model-settings.json`. Its `implementation` is a runtime of MLServer whose
 * models a backend runs, or a class: `module.Class` of Python, `module.py:Class` or `module.js#Class`.
 *
 * @example
 * ```ts
 * const triton = new Triton({
 *   extensions: [repository({ modelRepository: "models", modelFormats: [modelSettings()] })],
 * });
 * ```
 */
export function modelSettings(): ModelFormat {
  let workspace: Promise<Workspace> | undefined;
  let count = 0;
  return {
    file: SETTINGS,
    async layOut({ modelName, directory }) {
      const read = await readSettings(modelName, directory);
      const { config, files } = await layOutModel(read.settings);
      workspace ??= Workspace.make();
      const made = join((await workspace).path, String(++count), modelName);
      const version = join(made, read.version);
      await mkdir(version, { recursive: true });
      for (const [name, file] of Object.entries(files)) {
        if ("text" in file) await writeFile(join(version, name), file.text);
        else await linkOrCopy(file.path, join(version, name));
      }
      return {
        directory: made,
        config: { ...read.config, ...config, ...withParameters(read.config, config) },
      };
    },
    async close() {
      const open = workspace;
      workspace = undefined;
      await (await open)?.remove();
    },
  };
}

/** A directory for models that are laid out. It is removed when the process ends, if not before. */
class Workspace {
  static readonly #open = new Set<string>();

  private constructor(readonly path: string) {
    if (Workspace.#open.size === 0) process.once("exit", Workspace.#removeAll);
    Workspace.#open.add(path);
  }

  static async make(): Promise<Workspace> {
    return new Workspace(await realpath(await mkdtemp(join(tmpdir(), "tritonjs-models-"))));
  }

  async remove(): Promise<void> {
    Workspace.#open.delete(this.path);
    if (Workspace.#open.size === 0) process.off("exit", Workspace.#removeAll);
    await rm(this.path, { recursive: true, force: true });
  }

  static readonly #removeAll = () => {
    for (const path of Workspace.#open) rmSync(path, { recursive: true, force: true });
  };
}

/** Links a file, which takes no space. Copies it if it is on another file system. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(await realpath(from), to).catch(() => copyFile(from, to));
}

function withParameters(...configs: readonly Readonly<Record<string, unknown>>[]) {
  return { parameters: Object.assign({}, ...configs.map(({ parameters }) => parameters)) as object };
}

/** Fields of MLServer's settings that are read, and their types. Others have no effect. */
const FIELDS: Readonly<Record<string, string>> = {
  name: "string",
  folder: "string",
  implementation: "string",
  max_batch_size: "number",
  max_batch_time: "number",
  inputs: "array",
  outputs: "array",
  parameters: "object",
};

/** Types in the words of errors. */
const WORDS: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  array: "a list",
  object: "an object",
};

async function readSettings(modelName: string, directory: string) {
  const path = join(directory, SETTINGS);
  const json = await readJson(modelName, path);
  if (typeof json.folder === "string") {
    // A folder outside of a repository, whose model may be served under any name.
    const folder = resolve(directory, json.folder);
    const settings = await readJson(modelName, join(folder, SETTINGS));
    return readFields(modelName, folder, { ...settings, name: modelName });
  }
  return readFields(modelName, directory, json);
}

type Json = Readonly<Record<string, unknown>>;

async function readJson(modelName: string, path: string): Promise<Json> {
  const what = `model '${modelName}': ${path}`;
  const text = await readFile(path, "utf8").catch((cause: Error) => {
    throw errorFor("FILE_NOT_READABLE", `${what} cannot be read: ${cause.message}`, { cause });
  });
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw invalid(`${what} is malformed: ${(error as Error).message}`);
  }
  if (typeOf(json) !== "object") throw invalid(`${what}: expected an object, got ${typeOf(json)}`);
  for (const [key, type] of Object.entries(FIELDS)) {
    const value = (json as Json)[key];
    if (value === undefined || value === null || typeOf(value) === type) continue;
    throw invalid(`${what}: '${key}': expected ${WORDS[type]}, got ${typeOf(value)}`);
  }
  return json as Json;
}

function readFields(modelName: string, folder: string, json: Json) {
  const what = `model '${modelName}': ${join(folder, SETTINGS)}`;
  const name = json.name ?? modelName;
  if (name !== modelName) {
    throw invalid(
      `${what}: expected the name of its directory '${modelName}', got '${name}': rename one of them, or give the folder ` +
        "to --model, which takes the name from the settings",
    );
  }
  if (json.implementation === undefined) throw invalid(`${what}: expected an implementation, got none`);
  const parameters = (json.parameters ?? {}) as Json;
  const { uri, version, extra } = parameters;
  if (uri !== undefined && typeof uri !== "string") {
    throw invalid(`${what}: 'parameters.uri': expected a path, got ${typeOf(uri)}`);
  }
  const maxBatchSize = Number(json.max_batch_size ?? 0);
  if (!Number.isSafeInteger(maxBatchSize) || maxBatchSize < 0) {
    throw invalid(`${what}: 'max_batch_size': expected an integer of at least 0, got ${json.max_batch_size}`);
  }
  const seconds = Number(json.max_batch_time ?? 0);
  if (!(seconds >= 0))
    throw invalid(`${what}: 'max_batch_time': expected seconds, got ${json.max_batch_time}`);
  const tensors = (key: "inputs" | "outputs") =>
    ((json[key] ?? []) as readonly unknown[]).map((one, i) =>
      tensorOf(`${what}: '${key}[${i}]'`, one, maxBatchSize > 0),
    );
  const output = tensors("outputs");
  return {
    version: /^[1-9]\d*$/.test(String(version)) ? String(version) : "1",
    settings: {
      what,
      modelName,
      folder,
      implementation: json.implementation as string,
      uri: uri as string | undefined,
      outputs: output.map((one) => one.name),
      maxBatchSize,
    },
    config: {
      name: modelName,
      max_batch_size: maxBatchSize,
      input: tensors("inputs"),
      output,
      ...(maxBatchSize > 0 && {
        dynamic_batching: { max_queue_delay_microseconds: Math.round(seconds * 1_000_000) },
      }),
      parameters: textParameters((extra ?? {}) as Json),
    },
  };
}

/** A tensor of the settings, whose shape has the batch axis, as a configuration has it. */
function tensorOf(what: string, given: unknown, batches: boolean) {
  const { name, datatype, shape } = (given ?? {}) as { name?: unknown; datatype?: unknown; shape?: unknown };
  if (typeof name !== "string") throw invalid(`${what}: expected a name, got ${typeOf(name)}`);
  if (!isDataType(datatype as never)) {
    throw invalid(`${what} '${name}' has an ${unknownDataTypeText(datatype as string)}`);
  }
  if (!Array.isArray(shape) || !shape.every(Number.isSafeInteger) || (batches && shape.length === 0)) {
    const expected = batches
      ? "a list of dimensions that begins with the batch axis"
      : "a list of dimensions";
    throw invalid(`${what} '${name}': expected as its shape ${expected}, got ${JSON.stringify(shape)}`);
  }
  return { name, data_type: toConfigDataType(datatype as never), dims: batches ? shape.slice(1) : shape };
}

function textParameters(given: Json) {
  return Object.fromEntries(
    Object.entries(given).map(([key, value]) => [
      key,
      { string_value: typeof value === "string" ? value : JSON.stringify(value) },
    ]),
  );
}

/** Runtimes of MLServer whose models a backend runs: the usual names of their files, and how a file is laid out. */
const RUNTIMES: Readonly<
  Record<
    string,
    { readonly usual: readonly string[]; layOut(path: string, settings: Settings): Promise<LaidOut> }
  >
> = {
  "mlserver_sklearn.SKLearnModel": {
    usual: ["model.joblib", "model.pickle", "model.pkl"],
    layOut: async (path, settings) =>
      pythonClass(settings, { file: "sklearn_model.py", isOurs: true, className: "SKLearnModel", uri: path }),
  },
  "mlserver_xgboost.XGBoostModel": { usual: ["model.bst", "model.json", "model.ubj"], layOut: trees },
  "mlserver_lightgbm.LightGBMModel": { usual: ["model.bst", "model.txt"], layOut: trees },
  "mlserver_onnx.OnnxModel": { usual: ["model.onnx"], layOut: onnx },
  "mlserver_mlflow.MLflowRuntime": {
    usual: [
      "model.onnx",
      "data/model.xgb",
      "model.xgb",
      "model.ubj",
      "model.json",
      "data/model.lgb",
      "model.lgb",
    ],
    layOut: (path) => (path.endsWith(".onnx") ? onnx(path) : trees(path)),
  },
};

/** Runtimes of MLServer that nothing here runs, and what to do instead. */
const REFUSED: Readonly<Record<string, string>> = {
  "mlserver_huggingface.HuggingFaceRuntime":
    "export the model to ONNX with 'optimum-cli export onnx', or write a class with load and predict around the pipeline",
  "mlserver_catboost.CatboostModel": "export it with save_model('model.onnx', format='onnx')",
  "mlserver_alibi_explain.AlibiExplainRuntime": "write a class with load and predict around the explainer",
  "mlserver_alibi_detect.AlibiDetectRuntime": "write a class with load and predict around the detector",
  "mlserver_mllib.MLlibModel": "export the model to ONNX with onnxmltools",
};

async function layOutModel(settings: Settings): Promise<LaidOut> {
  const { what, implementation, folder, uri } = settings;
  const runtime = Object.hasOwn(RUNTIMES, implementation) ? RUNTIMES[implementation]! : undefined;
  if (runtime !== undefined) return runtime.layOut(await fileOf(settings, runtime.usual), settings);
  if (Object.hasOwn(REFUSED, implementation)) {
    throw unknown(what, implementation, `there is none for it here: ${REFUSED[implementation]}`);
  }
  const reference = parseClassReference(implementation) ?? (await pythonReference(folder, implementation));
  if (reference === undefined) {
    const known = Object.keys(RUNTIMES).join(", ");
    throw unknown(
      what,
      implementation,
      `expected ${known}, or a class: module.Class beside the settings, module.py:Class or module.js#Class`,
    );
  }
  return layOutClass(settings, reference, uri === undefined ? undefined : resolve(folder, uri));
}

/** `package.module.Class` in Python's words, if there is such a module in the folder. */
async function pythonReference(folder: string, implementation: string): Promise<ClassReference | undefined> {
  const parts = implementation.split(".");
  const className = parts.pop()!;
  if (parts.length === 0 || !parts.every((part) => /^\w+$/.test(part))) return undefined;
  const module = join(folder, `${join(...parts)}.py`);
  return (await isFile(module)) ? { module, className, language: "python" } : undefined;
}

async function layOutClass(
  settings: Settings,
  { module, className, language }: ClassReference,
  uri: string | undefined,
): Promise<LaidOut> {
  const { what, folder, modelName, maxBatchSize } = settings;
  const file = resolve(folder, module);
  if (!(await isFile(file)))
    throw invalid(`${what}: cannot read '${file}', which has its class '${className}'`);
  if (language === "python")
    return pythonClass(settings, { file, className, ...(uri !== undefined && { uri }) });
  const program = new URL("./index.js", import.meta.url).href;
  const given = [modelName, pathToFileURL(file).href, className, maxBatchSize].map((one) =>
    JSON.stringify(one),
  );
  return {
    config: { backend: "javascript", ...(uri !== undefined && withUri(uri)) },
    files: {
      "model.mjs": {
        text: `import { modelOfClass } from ${JSON.stringify(program)};\nexport default await modelOfClass(${given.join(", ")});\n`,
      },
    },
  };
}

function withUri(uri: string) {
  return { parameters: { uri: { string_value: uri } } };
}

function pythonClass(
  { folder, outputs }: Settings,
  {
    file,
    className,
    uri,
    isOurs = false,
  }: {
    readonly file: string;
    readonly className: string;
    readonly uri?: string;
    /** Whether the file is one of this package. */
    readonly isOurs?: boolean;
  },
): LaidOut {
  const settings = { file, className, folder, isOurs, outputs, ...(uri !== undefined && { uri }) };
  return {
    config: { backend: "python", ...(uri !== undefined && withUri(uri)) },
    files: {
      "model.py": {
        text:
          "from tritonjs_class.model import model_of_class\n\n" +
          `TritonPythonModel = model_of_class(${JSON.stringify(JSON.stringify(settings))})\n`,
      },
    },
  };
}

async function trees(path: string): Promise<LaidOut> {
  const { detectModelType, FILE_NAMES } = await import("../trees/read-forest.js");
  const type = detectModelType(await readFile(path));
  const parameters = { model_type: { string_value: type }, is_classifier: { string_value: "false" } };
  return { config: { backend: "fil", parameters }, files: { [FILE_NAMES[type]]: { path } } };
}

async function onnx(path: string): Promise<LaidOut> {
  return { config: { backend: "onnxruntime" }, files: { "model.onnx": { path } } };
}

/** The file of a model: its uri, the usual file in it, or without one the usual file beside the settings. */
async function fileOf({ what, folder, uri }: Settings, usual: readonly string[]): Promise<string> {
  if (uri !== undefined && /^\w{2,}:\/\//.test(uri)) {
    throw invalid(
      `${what}: 'parameters.uri': expected a path on this machine, got '${uri}': download it first`,
    );
  }
  const place = uri === undefined ? folder : resolve(folder, uri);
  if (uri !== undefined && (await isFile(place))) return place;
  for (const name of usual) if (await isFile(join(place, name))) return join(place, name);
  const searched = `no ${usual.join(", ")} in ${place}`;
  throw errorFor(
    "MODEL_FILE_MISSING",
    uri === undefined
      ? `${what}: expected a 'parameters.uri' with the path of the model, got none, and there is ${searched}`
      : `${what}: 'parameters.uri': expected a file, or a directory with one, got '${uri}': there is ${extname(uri) === "" ? searched : `no ${basename(uri)}`}`,
  );
}

function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}

function unknown(what: string, implementation: string, advice: string): TritonError {
  return errorFor("MODEL_NOT_SUPPORTED", `${what}: unknown implementation '${implementation}': ${advice}`);
}

function typeOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

function invalid(text: string): TritonError {
  return errorFor("INVALID_CONFIG", text);
}
