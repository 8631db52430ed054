import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** Sorted names of the directories in a directory. A symbolic link to a directory counts as one. */
export async function subdirectories(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  const kept = await Promise.all(
    entries.map(async (entry) => ((await isDirectory(directory, entry)) ? [entry.name] : [])),
  );
  return kept.flat().sort();
}

/** Sorted names of all entries of a directory. */
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
