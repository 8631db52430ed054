import type { Dirent } from "node:fs";
import { lstat, mkdir, mkdtemp, readdir, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative, sep } from "node:path";
import { isInside } from "@tritonjs/core/internal/worker";
import { errorFor, type ModelVersionPolicy, TritonError } from "@tritonjs/protocol";

/** Sorted names of the directories in a directory. A symbolic link to a directory counts as one. */
export async function subdirectories(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  const kept = await Promise.all(
    entries.map(async (entry) => ((await isDirectory(directory, entry)) ? [entry.name] : [])),
  );
  return kept.flat().sort();
}

export async function contents(directory: string): Promise<string[]> {
  return (await readdir(directory)).sort();
}

/** Names of the models in a repository: its directories that are not hidden. */
export async function modelNames(repository: string): Promise<string[]> {
  return (await subdirectories(repository)).filter((name) => !name.startsWith("."));
}

async function isDirectory(directory: string, entry: Dirent): Promise<boolean> {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  return stat(join(directory, entry.name)).then(
    (target) => target.isDirectory(),
    () => false,
  );
}

interface VersionDirectories {
  /** Ascending. */
  readonly versions: readonly number[];
  /** Why directories are not versions, one line each. */
  readonly ignored: readonly string[];
}

/** Directories of a model that do not hold a version. */
const OTHER_DIRECTORIES = ["warmup", "initial_state", "configs"];

/** Sorts the names of a model's directories into versions and ignored names. */
export function readVersionDirectories(names: readonly string[]): VersionDirectories {
  const versions: number[] = [];
  const ignored: string[] = [];
  for (const name of names) {
    if (OTHER_DIRECTORIES.includes(name)) continue;
    const problem = problemOf(name);
    if (problem === undefined) versions.push(Number(name));
    else ignored.push(`ignore version directory '${name}' which ${problem}`);
  }
  return { versions: versions.sort((a, b) => a - b), ignored };
}

function problemOf(name: string): string | undefined {
  if (/^0./.test(name)) return "contains leading zeros in its directory name";
  if (!/^-?\d+$/.test(name)) return "fails to convert to integral number";
  const version = Number(name);
  if (version < 1) return "is not a version: expected an integer of at least 1";
  return Number.isSafeInteger(version) ? undefined : "is too large for a version";
}

interface ChosenVersions {
  /** Ascending. */
  readonly versions: readonly number[];
  /** Versions that the policy names and that do not exist. */
  readonly missing: readonly number[];
}

/** Selects the versions that a policy serves. An empty policy serves all versions. */
export function versionsToLoad(
  existing: readonly number[],
  { latest, all, specific }: ModelVersionPolicy,
): ChosenVersions {
  if (specific !== undefined) {
    return {
      versions: existing.filter((version) => specific.versions.includes(version)),
      missing: specific.versions.filter((version) => !existing.includes(version)),
    };
  }
  const count = all !== undefined || latest === undefined ? existing.length : latest.numVersions;
  return { versions: count === 0 ? [] : existing.slice(-count), missing: [] };
}

export interface ModelTimes {
  readonly versions: ReadonlyMap<string, string>;
  readonly config: string;
  readonly others: string;
}

/** Largest depth. Links are followed only at the top of a model's directory, because they may form cycles. */
const MAX_DEPTH = 32;

/** Reads the state of a directory by times, sizes and places. Rejects if it vanishes, or no descriptor is free. */
export async function readModelTimes(directory: string, configPath: string): Promise<ModelTimes> {
  const versions = new Map<string, string>();
  const others: string[] = [];
  let config = "";
  const [configEntry] = relative(directory, configPath).split(sep);
  const names = (await readdir(directory)).sort();
  for (const name of names) {
    const signature = await signatureOf(join(directory, name), 0);
    if (/^\d+$/.test(name)) versions.set(name, signature);
    else if (name === configEntry) config = signature;
    else others.push(`${name} ${signature}`);
  }
  return { versions, config, others: others.join("\n") };
}

export function isModified(before: ModelTimes, now: ModelTimes): boolean {
  return (
    before.config !== now.config ||
    before.others !== now.others ||
    before.versions.size !== now.versions.size ||
    [...now.versions].some(([name, signature]) => before.versions.get(name) !== signature)
  );
}

/** Whether a version must be created again: its directory, or a file that all versions share, has changed. */
export function isVersionModified(
  before: ModelTimes | undefined,
  now: ModelTimes | undefined,
  version: number,
): boolean {
  if (before === undefined || now === undefined || before.others !== now.others) return true;
  return before.versions.get(String(version)) !== now.versions.get(String(version));
}

async function signatureOf(path: string, depth: number): Promise<string> {
  const found = await readEntry(path, depth);
  if (found === undefined) return "unreadable";
  const { mtimeNs, ctimeNs, size, ino, names } = found;
  if (!found.isDirectory) return `${mtimeNs} ${ctimeNs} ${size} ${ino}`;
  const inside: string[] = [];
  for (const name of names) inside.push(`${name} ${await signatureOf(join(path, name), depth + 1)}`);
  const own = `${mtimeNs} ${ino}`;
  return depth >= MAX_DEPTH ? own : `${own} {${inside.join(", ")}}`;
}

/** An entry with the names in it, at most down to the greatest depth; undefined if it is there, but cannot be read. */
async function readEntry(path: string, depth: number) {
  try {
    const entry = await statEntry(path, depth);
    const isListed = entry.isDirectory && depth < MAX_DEPTH;
    return { ...entry, names: isListed ? (await readdir(path)).sort() : [] };
  } catch (error) {
    if (await isUnreadable(path, error as NodeJS.ErrnoException)) return undefined;
    throw error;
  }
}

/** Whether an entry has no permission, or is a link without a target. Other faults do not describe the model. */
async function isUnreadable(path: string, { code = "" }: NodeJS.ErrnoException): Promise<boolean> {
  if (code !== "ENOENT") return ["EACCES", "EPERM", "ELOOP"].includes(code);
  const entry = await lstat(path).catch(() => undefined);
  return entry?.isSymbolicLink() ?? false;
}

async function statEntry(path: string, depth: number) {
  const options = { bigint: true } as const;
  const found = await (depth === 0 ? stat(path, options) : lstat(path, options));
  const entry = found.isSymbolicLink() ? await stat(path, options) : found;
  const { mtimeNs, ctimeNs, size, ino } = entry;
  // A link below the top counts as a file, whatever its target.
  return { mtimeNs, ctimeNs, size, ino, isDirectory: found.isDirectory() };
}

/** A directory for the files of a load request. It exists while a model is made of them. */
export class OverrideDirectory {
  /** The creator is the first user. */
  #users = 1;
  #removal: Promise<void> | undefined;

  private constructor(
    readonly path: string,
    private readonly live: Set<OverrideDirectory>,
  ) {
    live.add(this);
  }

  /**
   * Makes the directory for the files of a load request. Returns undefined when the request has no files.
   *
   * @param live all existing directories, including this one until it is removed
   * @throws TritonError INVALID_ARG for files without a configuration, and as `create`.
   */
  static async forLoad(
    config: string | undefined,
    files: ReadonlyMap<string, Uint8Array> | undefined,
    live: Set<OverrideDirectory>,
  ): Promise<OverrideDirectory | undefined> {
    if (files === undefined || files.size === 0) return undefined;
    if (config !== undefined) return OverrideDirectory.create(files, live);
    const text = "Load parameter 'config' must be specified for model file override";
    throw errorFor("INVALID_LOAD_REQUEST", text);
  }

  /**
   * Writes files into a directory of their own.
   *
   * @param files contents by path below the model's directory: `1/model.onnx`
   * @throws TritonError INVALID_ARG for a path that leads out of the directory, or that cannot be a file.
   */
  static async create(
    files: ReadonlyMap<string, Uint8Array>,
    live: Set<OverrideDirectory>,
  ): Promise<OverrideDirectory> {
    const path = await realpath(await mkdtemp(join(tmpdir(), "tritonjs-")));
    const directory = new OverrideDirectory(path, live);
    try {
      for (const [name, bytes] of files) await directory.#write(name, bytes);
    } catch (error) {
      await directory.remove();
      throw error;
    }
    return directory;
  }

  retain(): void {
    this.#users++;
  }

  /** Removes a user of the files. The directory is removed with the last. */
  async release(): Promise<void> {
    this.#users--;
    if (this.#users <= 0) await this.remove();
  }

  /** Removes the directory, even if it is in use. A second call waits for the first. */
  async remove(): Promise<void> {
    this.#removal ??= rm(this.path, { recursive: true, force: true }).catch(() => {});
    await this.#removal;
    this.live.delete(this);
  }

  async #write(name: string, bytes: Uint8Array): Promise<void> {
    const path = join(this.path, name);
    if (!isInside(this.path, path)) {
      throw errorFor(
        "INVALID_LOAD_REQUEST",
        `Invalid file parameter 'file:${name}' with normalized path '${path}' must stay within model directory.`,
      );
    }
    try {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, bytes, { flag: "wx" });
    } catch (cause) {
      const why = TritonError.from(cause).message;
      throw errorFor("INVALID_LOAD_REQUEST", `Invalid file parameter 'file:${name}': ${why}`, { cause });
    }
  }
}
