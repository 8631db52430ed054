import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** Names of the directories in a directory, also of those behind symbolic links, sorted. */
export async function subdirectories(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  const kept = await Promise.all(
    entries.map(async (entry) => ((await isDirectory(directory, entry)) ? [entry.name] : [])),
  );
  return kept.flat().sort();
}

/** Names of everything in a directory, sorted. */
export async function contents(directory: string): Promise<string[]> {
  return (await readdir(directory)).sort();
}

/** Names of the models in a repository: its directories but for hidden ones. */
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
