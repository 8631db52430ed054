import { type ChildProcess, spawn } from "node:child_process";
import { createReadStream, rmSync } from "node:fs";
import { mkdtemp, open, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Readable, Transform, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import type { ModelSource } from "@tritonjs/core/backend";
import { isInside, startProcess } from "@tritonjs/core/internal/worker";
import { TritonError } from "@tritonjs/protocol";

const MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY";

/** A Python, held by one user of it. */
export interface FoundPython {
  /** The program: a path, or a name to look up in PATH. */
  readonly program: string;
  /** Releases the Python. */
  release(): Promise<void>;
}

/**
 * Finds the Python that runs a model. In order: the environment (a directory or an archive) that the parameter
 * EXECUTION_ENV_PATH names, the setting `executable` of the backend, the environment variable TRITONJS_PYTHON,
 * `python3`.
 *
 * @param unpackWithinMs how long unpacking may take
 * @throws TritonError INVALID_ARG for invalid parameters, INTERNAL for an archive that cannot be unpacked
 */
export async function findPython(
  { name, directory, config, settings }: Pick<ModelSource, "name" | "directory" | "config" | "settings">,
  unpackWithinMs: number,
): Promise<FoundPython> {
  const { parameters } = config;
  const forced = parameters.FORCE_CPU_ONLY_INPUT_TENSORS?.stringValue;
  if (forced !== undefined && forced !== "yes" && forced !== "no") {
    throw new TritonError("INTERNAL", `Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: ${forced}'`);
  }
  const environment = parameters.EXECUTION_ENV_PATH?.stringValue;
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
    throw new TritonError("INVALID_ARG", `${what}: expected a path inside the model's directory`, {
      reason: "PATH_NOT_ALLOWED",
    });
  }
  const found = await stat(path).catch(() => undefined);
  if (found === undefined)
    throw new TritonError("INVALID_ARG", `${what}: '${path}' does not exist`, { reason: "INVALID_CONFIG" });
  if (found.isDirectory()) {
    const program = await programIn(path);
    if (program !== undefined) return kept(program);
    throw new TritonError("INVALID_ARG", `${what}: '${join(path, "bin", "python3")}' does not exist`, {
      reason: "INVALID_CONFIG",
    });
  }
  const environment = await unpackedEnvironment(path, unpackWithinMs).catch((cause) => {
    const why = TritonError.from(cause).message;
    throw new TritonError("INTERNAL", `${what}: cannot unpack it: ${why}`, { cause });
  });
  const program = await programIn(environment.directory);
  if (program !== undefined) return { program, release: environment.release };
  await environment.release();
  throw new TritonError("INVALID_ARG", `${what}: expected 'bin/python3' in the archive`, {
    reason: "INVALID_CONFIG",
  });
}

async function programIn(environment: string): Promise<string | undefined> {
  for (const name of ["python3", "python"]) {
    const program = join(environment, "bin", name);
    if (await stat(program).catch(() => undefined)) return program;
  }
  return undefined;
}

/** A Python that needs no release. */
function kept(program: string): FoundPython {
  return { program, release: async () => {} };
}

/** An unpacked environment, held by one user of it. */
interface UnpackedEnvironment {
  readonly directory: string;
  /** Releases the environment. The last release removes it. */
  release(): Promise<void>;
}

interface Unpacked {
  users: number;
  readonly directory: Promise<string>;
}

/** Environments by archive and time of its last change, shared by all models of this process. */
const unpacked = new Map<string, Unpacked>();
/** Directories to remove when the process ends. */
const directories = new Set<string>();

/**
 * Unpacks an environment unless it is unpacked already.
 *
 * @throws Error with the reason why it cannot be unpacked; the next call tries again
 */
async function unpackedEnvironment(archive: string, withinMs: number): Promise<UnpackedEnvironment> {
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

/** Characters kept of the error output of `tar`. */
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
