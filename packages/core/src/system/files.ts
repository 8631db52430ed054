import { closeSync, constants, fstatSync, openSync, readFileSync, realpathSync, type Stats } from "node:fs";
import { open, readdir, realpath, stat } from "node:fs/promises";
import { delimiter, dirname, join, resolve, sep } from "node:path";
import { errorFor, TritonError } from "@tritonjs/protocol";

/** Texts of C's `strerror` for the possible failures of a file. */
const WORDS: Readonly<Record<string, string>> = {
  ENOENT: "No such file or directory",
  ENOTDIR: "Not a directory",
  EISDIR: "Is a directory",
  EACCES: "Permission denied",
  EPERM: "Operation not permitted",
  ELOOP: "Too many levels of symbolic links",
  ENAMETOOLONG: "File name too long",
  ENXIO: "No such device or address",
};

/** With O_NONBLOCK, a pipe without a writer opens at once and is then refused, instead of blocking forever. */
const READ = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Largest file that is read, in bytes. No configuration or list of labels is that long. */
export const MAX_BYTES = 64 * 1024 * 1024;

/** Reads a file of a model's directory, of at most 64 MiB. Rejects with Triton's text. */
export async function readSmallFile(path: string): Promise<Uint8Array> {
  try {
    const file = await open(path, READ);
    try {
      const stats = await file.stat();
      assertFile(path, stats);
      if (stats.size <= MAX_BYTES) return await file.readFile();
      throw errorFor(
        "INVALID_MODEL",
        `cannot read ${path}: expected at most ${MAX_BYTES} bytes, got ${stats.size}`,
      );
    } finally {
      await file.close();
    }
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** Reads a file synchronously. Throws with Triton's text. */
export function readFileNow(path: string): Uint8Array {
  try {
    const file = openSync(path, READ);
    try {
      assertFile(path, fstatSync(file));
      return new Uint8Array(readFileSync(file));
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw unreadable(path, error);
  }
}

function assertFile(path: string, stats: Stats): void {
  // Directories pass: reading them fails with the system's own text.
  if (stats.isFile() || stats.isDirectory()) return;
  throw errorFor("INVALID_MODEL", `cannot read ${path}: it is not a regular file`);
}

function unreadable(path: string, error: unknown): TritonError {
  if (TritonError.is(error)) return error;
  const text = `failed to open text file for read ${path}: ${errorWords(error)}`;
  return errorFor("FILE_NOT_READABLE", text, { cause: error });
}

/** The error of what reads a file: its own, or one that names the file. */
export function unreadableFile(what: string, error: unknown): TritonError {
  if (TritonError.is(error)) return error;
  return errorFor("INVALID_MODEL", `cannot read ${what}: ${(error as Error).message}`, { cause: error });
}

function errorWords(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return (code !== undefined ? WORDS[code] : undefined) ?? TritonError.from(error).message;
}

/**
 * Options of files that hold values of requests: nobody but the owner may read them. A file that exists keeps its rights,
 * so that an operator can make it for a group.
 */
export const PRIVATE_FILE = { mode: 0o600 } as const;

/** Options of `mkdir` for directories of such files. A directory that exists keeps its rights. */
export const PRIVATE_DIRECTORY = { recursive: true, mode: 0o700 } as const;

export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** True if a path is a directory or below it, by its text alone. */
export function isInside(directory: string, path: string): boolean {
  const base = resolve(directory);
  const target = resolve(path);
  return target === base || target.startsWith(base.endsWith(sep) ? base : base + sep);
}

/**
 * Refuses a path if symbolic links lead out of a directory. A missing file is accepted: opening it will fail.
 *
 * @param others directories outside that links may lead to as well
 */
export async function assertInside(
  directory: string,
  path: string,
  others: readonly string[] = [],
): Promise<void> {
  const target = await realpath(path).catch(() => undefined);
  if (target === undefined) return;
  for (const allowed of [directory, ...others]) {
    const base = await realpath(allowed).catch(() => undefined);
    if (base !== undefined && isInside(base, target)) return;
  }
  throw errorFor(
    "PATH_NOT_ALLOWED",
    `${path} leads out of ${directory} through a symbolic link: copy the file into the directory, or allow the target ` +
      "by the setting linked-directories of the backend",
  );
}

/**
 * Refuses a path of a model if symbolic links lead out of its repository, which is the directory around the model's.
 * Models of one repository may share files in this way.
 *
 * @param settings those of the model's backend, which may allow further directories
 */
export function assertInRepository(
  modelDirectory: string,
  path: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  return assertInside(dirname(resolve(modelDirectory)), path, linkedDirectories(settings));
}

/** Directories that the owner of the server lets links of a backend's models lead to, separated as in `PATH`. */
export function linkedDirectories(settings: Readonly<Record<string, string>>): readonly string[] {
  return (settings["linked-directories"] ?? "").split(delimiter).filter((one) => one !== "");
}

/**
 * Refuses a directory of a model if a symbolic link below it leads out of the repository. For backends that read more
 * than one file of it.
 */
export async function assertLinksInRepository(
  modelDirectory: string,
  directory: string,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const seen = new Set<string>();
  const walk = async (folder: string): Promise<void> => {
    const real = await realpath(folder);
    if (seen.has(real)) return;
    seen.add(real);
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isSymbolicLink()) await assertInRepository(modelDirectory, path, settings);
      else if (!entry.isDirectory()) continue;
      const found = await stat(path).catch(() => undefined);
      if (found?.isDirectory()) await walk(path);
    }
  };
  await walk(directory);
}

/** Reads a data file of a model, by the name in its configuration. */
export type ReadDataFile = (file: string) => Uint8Array;

/** Reads data files of a model, only from one folder of its directory: `warmup` or `initial_state`. */
export function dataFilesOf(directory: string, folder: string): ReadDataFile {
  return (file) => readFileNow(dataFilePath(directory, folder, file));
}

/** Path of a data file inside the folder. The file need not exist. */
function dataFilePath(directory: string, folder: string, file: string): string {
  const path = join(directory, folder, file);
  if (!isInside(join(directory, folder), path) || !isInside(realPath(directory), realPath(path, directory))) {
    throw errorFor(
      "PATH_NOT_ALLOWED",
      `data file: expected a path inside the model's directory ${directory}, got '${file}'`,
    );
  }
  return path;
}

/** Resolves symbolic links. For a missing path it resolves `instead`. */
function realPath(path: string, instead = path): string {
  try {
    return realpathSync(path);
  } catch {
    return instead === path ? path : realPath(instead);
  }
}
