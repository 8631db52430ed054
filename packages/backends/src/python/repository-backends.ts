import { type ChildProcess, spawn } from "node:child_process";
import { createReadStream, rmSync } from "node:fs";
import { mkdtemp, open, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Readable, Transform, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { createGunzip } from "node:zlib";
import {
  type Backend,
  type BackendFactory,
  divideOutputs,
  type Execution,
  type ExecutorContext,
  findModelFile,
  hostingOf,
  joinInputs,
  type ModelFiles,
} from "@tritonjs/core/backend";
import {
  loadTimeoutMs,
  MODEL_DIRECTORY,
  OutputChecker,
  totalRows,
  withInputs,
} from "@tritonjs/core/internal";
import { isInside, Log, realClock, startProcess } from "@tritonjs/core/internal/worker";
import { errorFor, type Isolation, NO_PARAMETERS, type Tensor, TritonError } from "@tritonjs/protocol";
import {
  assertPythonCanRun,
  completeWithPython,
  LOAD_TIMEOUT_SECONDS,
  STUB_TIMEOUT_SECONDS,
} from "./complete-with-python.js";
import { type FoundPython, PYTHON_PARAMETERS, PythonExecutor } from "./python-executor.js";
import type { PythonSettings } from "./python-session.js";

const ISOLATIONS: readonly Isolation[] = ["process"];

/** Triton's list. A model's name is part of the names of its processes. */
const SHELL_CHARACTERS = /[;|&$`<>()[\]{}\\"'*?~#!]/;

/**
 * The backend `python` for models of a repository: `<version>/model.py` with a class `TritonPythonModel` that imports
 * `triton_python_backend_utils`, as for Triton. Each instance is a child process of `python3` with numpy.
 */
export const pythonBackend: BackendFactory = PYTHON_PARAMETERS.declaredBy(async (source) => {
  assertPythonCanRun();
  assertStubName(source.name);
  return pythonModel(source, await modelFile(source), "python", false);
});

/** The backend of a backend directory whose program `model.py` all its models share. */
export function sharedBackend(path: string, backendName: string): BackendFactory {
  return PYTHON_PARAMETERS.declaredBy((source) => pythonModel(source, path, backendName, true));
}

/**
 * The backend that runs a model with a Python program: that of the model, or the one that models of a backend share.
 *
 * @param path the file with `TritonPythonModel`
 * @param isShared true if models of the backend share the program, so that it is outside of their directories
 * @param takesBatches true if it gets the requests of a batch as one
 * @throws TritonError INVALID_ARG for settings and parameters of the model that Python cannot have
 */
async function pythonModel(
  source: ModelFiles,
  path: string,
  backendName: string,
  isShared: boolean,
  takesBatches = false,
): Promise<Backend> {
  assertPythonCanRun();
  assertStubName(source.name);
  const withinMs = loadTimeoutMs(source, LOAD_TIMEOUT_SECONDS);
  const hosting = hostingOf(source, ISOLATIONS, false);
  if (hosting.heapLimitMb !== undefined) {
    const text = `model '${source.name}' has heap_limit_mb, which has no effect on Python: remove it`;
    throw errorFor("INVALID_CONFIG", text);
  }
  const stubTimeoutMs = 1000 * stubTimeoutSeconds(source);
  const first = await findPython(source, withinMs);
  // The first instance uses the Python that completed the configuration.
  let spare: FoundPython | undefined = first;
  const find = async () => {
    const found = spare;
    spare = undefined;
    return found ?? findPython(source, withinMs);
  };
  const settings: PythonSettings = {
    python: first.program,
    path,
    stubTimeoutMs,
    loadTimeoutMs: withinMs,
    ...(isShared && { backend: { name: backendName, modelDirectory: source.versionDirectory } }),
  };
  return {
    backendName,
    platform: "",
    isolations: ISOLATIONS,
    describe: () => undefined,
    completeConfig: async (config) => {
      try {
        // The lines that the model prints meanwhile.
        const log = new Log({ error: source.warn, warn: source.warn, info: () => {}, debug: () => {} });
        await completeWithPython(config, settings, { clock: realClock, log });
      } catch (error) {
        await first.release();
        throw error;
      }
    },
    hosting,
    createExecutor: (context) => {
      const open = (own: ExecutorContext) => new PythonExecutor(settings, source.directory, own, find);
      return takesBatches ? mergedBatches(context, open) : open(context);
    },
  };
}

function assertStubName(name: string): void {
  if (!SHELL_CHARACTERS.test(name)) return;
  throw errorFor("INVALID_CONFIG", "Invalid stub name: contains invalid characters");
}

function stubTimeoutSeconds({ settings }: ModelFiles): number {
  const text = settings["stub-timeout-seconds"];
  const seconds = text === undefined ? STUB_TIMEOUT_SECONDS : Number(text);
  if (seconds > 0 && Number.isFinite(seconds)) return seconds;
  throw errorFor("INVALID_CONFIG", "stub-timeout-seconds can't be smaller than or equal to zero.");
}

async function modelFile(source: ModelFiles): Promise<string> {
  const { defaultModelFilename } = source.config;
  const name = defaultModelFilename === "" ? "model.py" : defaultModelFilename;
  if (!name.endsWith(".py")) {
    const text = `Model name must end with '.py'. Model name is "${defaultModelFilename}".`;
    throw errorFor("INVALID_CONFIG", text);
  }
  const missing = (path: string) =>
    errorFor("FILE_NOT_READABLE", `model.py does not exist in the model repository path: ${path}`);
  const { path, isDirectory } = await findModelFile(source, ["model.py"], missing);
  if (isDirectory) throw missing(path);
  return path;
}

const PROGRAM = fileURLToPath(new URL("../../python/tritonjs_torch/model.py", import.meta.url));

/** Parameters without effect in a process of its own, with the reasons. */
const NO_EFFECT: Readonly<Record<string, string>> = {
  ENABLE_WEIGHT_SHARING: "each instance is a process with weights of its own",
};

/**
 * The backend `pytorch` for models of a repository: `<version>/model.pt`, a TorchScript file, or with
 * `runtime: "model.py"` a module with a class of `torch.nn.Module`. Each instance is a process of `python3` with torch,
 * which gets the requests of a batch as one.
 */
export const pytorchBackend: BackendFactory = PYTHON_PARAMETERS.declaredBy(async (source) => {
  const { name, config } = source;
  if (config.platform === "torch_aoti") throw notArchive(name);
  if (config.runtime === "model.py") await findModelFile(source, ["model.py", "model.pt"]);
  else await findModelFile(source, ["model.pt"]);
  for (const [key, why] of Object.entries(NO_EFFECT)) {
    if (Object.hasOwn(config.parameters, key))
      source.warn(`model '${name}': parameter '${key}' has no effect: ${why}`);
  }
  const backend = await pythonModel(source, PROGRAM, "pytorch", true, true);
  return { ...backend, platform: "pytorch_libtorch" };
});

function notArchive(name: string): TritonError {
  const text =
    `model '${name}' is compiled ahead of time (torch_aoti, model.pt2), which is not supported: save it as TorchScript, ` +
    "torch.jit.trace(model, example).save('model.pt'), and set platform: \"pytorch_libtorch\"";
  return errorFor("MODEL_NOT_SUPPORTED", text);
}

/** Leaves the outputs of a whole batch unchecked: they are checked before they are split. */
class UncheckedOutputs extends OutputChecker {
  override check(outputs: Map<string, Tensor>): Map<string, Tensor> {
    return outputs;
  }
}

/**
 * Runs a Python program that gets the requests of a batch as one request with all rows, and answers them at once. The
 * inputs are joined and the outputs split here, by the rules of the configuration: ragged inputs, batch inputs and
 * batch outputs among them.
 */
function mergedBatches(
  context: ExecutorContext,
  open: (context: ExecutorContext) => PythonExecutor,
): PythonExecutor {
  const { checker, info } = context;
  const executor = open({ ...context, checker: new UncheckedOutputs(info.modelConfig) });
  const execute = executor.execute.bind(executor);
  executor.execute = async (execution) => {
    const [outputs] = (await execute(merged(execution))) ?? [];
    if (TritonError.is(outputs)) throw outputs;
    const rows = totalRows(execution.requests);
    return divideOutputs(execution, checker.check(outputs as Map<string, Tensor>, rows, [], true));
  };
  return executor;
}

/** An execution as one request. It runs to its end, whichever requests are cancelled. */
function merged(whole: Execution): Execution {
  const rows = totalRows(whole.requests);
  const request = withInputs(whole.requests[0]!, joinInputs(whole), rows);
  const nothing = () => {};
  return {
    requests: [Object.assign(request, { parameters: NO_PARAMETERS, requestedOutputs: [], batchSize: rows })],
    decoupled: false,
    clock: whole.clock,
    get signal() {
      return whole.signal;
    },
    get models() {
      return whole.models;
    },
    inputsReady: () => whole.inputsReady(),
    outputsReady: () => whole.outputsReady(),
    postponed: () => whole.postponed?.(),
    watch: nothing,
    isOpen: () => true,
    writable: () => undefined,
    send: nothing,
    sendError: nothing,
    finish: nothing,
    reschedule: nothing,
  };
}

/**
 * Finds the Python that runs a model. In order: the environment (a directory or an archive) that the parameter
 * EXECUTION_ENV_PATH names, the setting `executable` of the backend, the environment variable TRITONJS_PYTHON,
 * `python3`.
 *
 * @param unpackWithinMs how long unpacking may take
 * @throws TritonError INVALID_ARG for invalid parameters, INTERNAL for an archive that cannot be unpacked
 */
async function findPython(
  { name, directory, config, settings }: Pick<ModelFiles, "name" | "directory" | "config" | "settings">,
  unpackWithinMs: number,
): Promise<FoundPython> {
  const forced = PYTHON_PARAMETERS.text({ config }, "FORCE_CPU_ONLY_INPUT_TENSORS");
  if (forced !== undefined && forced !== "yes" && forced !== "no") {
    throw new TritonError("INTERNAL", `Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: ${forced}'`);
  }
  const environment = PYTHON_PARAMETERS.text({ config }, "EXECUTION_ENV_PATH");
  if (environment !== undefined) return pythonOf(name, directory, environment, unpackWithinMs);
  return kept(settings.executable ?? process.env.TRITONJS_PYTHON ?? "python3");
}

async function pythonOf(
  name: string,
  directory: string,
  given: string,
  unpackWithinMs: number,
): Promise<FoundPython> {
  const path = resolve(given.replace(MODEL_DIRECTORY, () => directory));
  const what = `model '${name}' has EXECUTION_ENV_PATH '${given}'`;
  if (given.includes(MODEL_DIRECTORY) && !isInside(directory, path)) {
    throw errorFor("PATH_NOT_ALLOWED", `${what}: expected a path inside the model's directory`);
  }
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) throw errorFor("INVALID_CONFIG", `${what}: '${path}' does not exist`);
  if (found.isDirectory()) {
    const program = await programIn(path);
    if (program !== undefined) return kept(program);
    throw errorFor("INVALID_CONFIG", `${what}: '${join(path, "bin", "python3")}' does not exist`);
  }
  const environment = await unpackedEnvironment(path, unpackWithinMs).catch((cause) => {
    const why = TritonError.from(cause).message;
    throw errorFor("INTERNAL", `${what}: cannot unpack it: ${why}`, { cause });
  });
  const program = await programIn(environment.directory);
  if (program !== undefined) return { program, release: environment.release };
  await environment.release();
  throw errorFor("INVALID_CONFIG", `${what}: expected 'bin/python3' in the archive`);
}

async function programIn(environment: string): Promise<string | undefined> {
  for (const name of ["python3", "python"]) {
    const program = join(environment, "bin", name);
    if (await stat(program).catch(() => undefined)) return program;
  }
  return undefined;
}

function kept(program: string): FoundPython {
  return { program, release: async () => {} };
}

/** Environments by archive and time of its last change, shared by all models of this process. */
const unpacked = new Map<string, { users: number; readonly directory: Promise<string> }>();
const directories = new Set<string>();

/**
 * Unpacks an environment unless it is unpacked already. The last release removes it.
 *
 * @throws Error with the reason why it cannot be unpacked; the next call tries again
 */
async function unpackedEnvironment(
  archive: string,
  withinMs: number,
): Promise<{ readonly directory: string; release(): Promise<void> }> {
  const path = await realpath(archive);
  const { mtimeNs, size } = await stat(path, { bigint: true });
  const key = [mtimeNs, size, path].join(" ");
  let one = unpacked.get(key);
  if (one === undefined) {
    one = { users: 0, directory: unpack(path, withinMs) };
    unpacked.set(key, one);
  }
  const { directory } = one;
  one.users++;
  let released = false;
  const release = async () => {
    if (released) return;
    released = true;
    one.users--;
    if (one.users > 0) return;
    unpacked.delete(key);
    await directory.then(remove, () => {});
  };
  try {
    return { directory: await directory, release };
  } catch (error) {
    await release();
    throw error;
  }
}

async function unpack(archive: string, withinMs: number): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "tritonjs-python-")));
  if (directories.size === 0) process.once("exit", removeAll);
  directories.add(directory);
  try {
    await unpackArchive(archive, directory, withinMs);
  } catch (error) {
    await remove(directory);
    throw error;
  }
  return directory;
}

async function remove(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true }).catch(() => {});
  directories.delete(directory);
  if (directories.size === 0) process.off("exit", removeAll);
}

function removeAll(): void {
  for (const directory of directories) {
    try {
      rmSync(directory, { recursive: true, force: true });
    } catch {
      // A directory that cannot be removed stays until the directory for temporary files is cleaned.
    }
  }
}

const MOST_WORDS = 2000;

/** `tar` has read enough, or has ended. Its exit status tells which. */
const NOT_READ_ON = new Set(["EPIPE", "ECONNRESET", "ERR_STREAM_PREMATURE_CLOSE"]);

/**
 * Unpacks a tar archive, gzipped or plain, into a directory with the program `tar`, which writes only inside the
 * directory. This process reads the archive and sends it through a pipe, so that `tar` ends with this process.
 *
 * @throws Error with the reason, in the words of `tar` or of zlib
 */
async function unpackArchive(archive: string, directory: string, withinMs: number): Promise<void> {
  const gunzip = (await isGzipped(archive)) ? [createGunzip()] : [];
  const env = { ...process.env, LC_ALL: "C", TAR_OPTIONS: undefined };
  const tar = startProcess(() =>
    spawn("tar", ["-x", "-o", "-f", "-", "-C", directory], { stdio: ["pipe", "ignore", "pipe"], env }),
  );
  let late = false;
  const limit = setTimeout(() => {
    late = true;
    tar.kill("SIGKILL");
  }, withinMs);
  try {
    // Without a free descriptor, Node makes no streams. Its types say otherwise.
    const input = tar.stdin as Writable | undefined;
    const [failure, unread] = await Promise.all([
      endOf(tar),
      input && feed([createReadStream(archive, { highWaterMark: 1 << 20 }), ...gunzip, input]),
    ]);
    if (late) throw new Error(`unpacking took more than ${withinMs / 1000} s`);
    const why = unread ?? failure;
    if (why !== undefined) throw new Error(why);
  } finally {
    clearTimeout(limit);
  }
}

/** The reason why the archive could not be read; undefined when it could, or when `tar` stopped reading. */
async function feed(streams: readonly (Readable | Transform | Writable)[]): Promise<string | undefined> {
  try {
    await pipeline(streams as readonly NodeJS.ReadWriteStream[]);
    return undefined;
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    return NOT_READ_ON.has(code) ? undefined : message;
  }
}

/** The reason why `tar` failed; undefined when it succeeded. */
function endOf(tar: ChildProcess): Promise<string | undefined> {
  let words = "";
  const stderr = tar.stderr as Readable | undefined;
  stderr?.setEncoding("utf8").on("data", (text: string) => {
    if (words.length < MOST_WORDS) words += text.slice(0, MOST_WORDS - words.length);
  });
  return new Promise((resolve) => {
    tar.on("error", (error) => resolve(`cannot start the program 'tar' (${error.message})`));
    tar.on("close", (code, signal) => {
      if (code === 0) return resolve(undefined);
      const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
      resolve(words.trim().replaceAll("\n", "; ") || `tar ${how}`);
    });
  });
}

async function isGzipped(path: string): Promise<boolean> {
  await using file = await open(path);
  const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0);
  return buffer[0] === 0x1f && buffer[1] === 0x8b;
}
