import { lstat, readdir, stat } from "node:fs/promises";
import { join, relative, sep } from "node:path";

/** The state of a model's directory, to detect changes. */
export interface ModelTimes {
  /** State of each version, by the name of its directory. */
  readonly versions: ReadonlyMap<string, string>;
  /** State of the configuration. */
  readonly config: string;
  /** State of everything else. */
  readonly others: string;
}

/** Largest depth. Links are followed only at the top of a model's directory, because they may form cycles. */
const MAX_DEPTH = 32;

/**
 * Reads the state of a model's directory. Files are compared by time, size and place, not by contents.
 *
 * @throws Error if the directory vanishes while it is read, or no descriptor is free
 */
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

/** Whether any part differs. */
export function isModified(before: ModelTimes, now: ModelTimes): boolean {
  return (
    before.config !== now.config ||
    before.others !== now.others ||
    before.versions.size !== now.versions.size ||
    [...now.versions].some(([name, signature]) => before.versions.get(name) !== signature)
  );
}

/**
 * Whether a loaded version must be created again because its directory, or a file that all versions share, has changed.
 */
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
    const entry = await look(path, depth);
    const isListed = entry.isDirectory && depth < MAX_DEPTH;
    return { ...entry, names: isListed ? (await readdir(path)).sort() : [] };
  } catch (error) {
    if (await isUnreadable(path, error as NodeJS.ErrnoException)) return undefined;
    throw error;
  }
}

/**
 * Whether an entry is there, but cannot be read: it has no permission, or is a link without a target. Other faults do
 * not describe the model: the directory vanished during the read, or no descriptor is free.
 */
async function isUnreadable(path: string, { code = "" }: NodeJS.ErrnoException): Promise<boolean> {
  if (code !== "ENOENT") return ["EACCES", "EPERM", "ELOOP"].includes(code);
  const entry = await lstat(path).catch(() => undefined);
  return entry?.isSymbolicLink() ?? false;
}

async function look(path: string, depth: number) {
  const options = { bigint: true } as const;
  const found = await (depth === 0 ? stat(path, options) : lstat(path, options));
  const entry = found.isSymbolicLink() ? await stat(path, options) : found;
  const { mtimeNs, ctimeNs, size, ino } = entry;
  // A link below the top counts as a file, whatever its target.
  return { mtimeNs, ctimeNs, size, ino, isDirectory: found.isDirectory() };
}
