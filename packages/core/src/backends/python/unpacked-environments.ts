import { rmSync } from "node:fs";
import { mkdtemp, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unpackArchive } from "./unpack-archive.js";

/** An environment that is unpacked, for one user of it. */
export interface UnpackedEnvironment {
  readonly directory: string;
  /** The user needs it no more; with the last one it is removed. */
  release(): Promise<void>;
}

interface Unpacked {
  users: number;
  readonly directory: Promise<string>;
}

/** By archive and time of its last change: one for all models of this process. */
const unpacked = new Map<string, Unpacked>();
/** What is left of these when the process ends is removed then. */
const directories = new Set<string>();

/**
 * Unpacks an environment, unless it is.
 *
 * @throws Error with why it cannot be unpacked; the next to ask tries again
 */
export async function unpackedEnvironment(archive: string, withinMs: number): Promise<UnpackedEnvironment> {
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
      // What cannot be removed is left to whoever cleans the directory for temporary files.
    }
  }
}
