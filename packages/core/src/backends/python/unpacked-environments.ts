import { rmSync } from "node:fs";
import { mkdtemp, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unpackArchive } from "./unpack-archive.js";

/** An unpacked environment, held by one user of it. */
export interface UnpackedEnvironment {
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
      // A directory that cannot be removed stays until the directory for temporary files is cleaned.
    }
  }
}
