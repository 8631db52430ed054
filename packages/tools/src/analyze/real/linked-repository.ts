import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { copyFile, link, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writePrototxt } from "@tritonjs/core/config";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { cleanUpAtExit } from "../../lifetime/exit-cleanups.js";

const CONFIG_FILE = "config.pbtxt";

/**
 * Makes a repository with the models of another one and other configurations. Files are hard links where the file
 * system allows it, so that large models are not copied.
 *
 * @param configs configurations of the models that differ, by name
 * @returns the folder, and a function that removes it
 */
export async function linkRepository(
  repository: string,
  configs: Readonly<Record<string, ModelConfig>>,
): Promise<{ readonly folder: string; remove(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-analyze-"));
  const forget = cleanUpAtExit(() => rmSync(folder, { recursive: true, force: true }));
  const remove = async () => {
    await rm(folder, { recursive: true, force: true });
    forget();
  };
  try {
    for (const entry of await readdir(repository)) {
      const path = join(repository, entry);
      if ((await stat(path)).isDirectory()) await linkModel(path, join(folder, entry), configs[entry]);
    }
  } catch (error) {
    await remove();
    throw error;
  }
  return { folder, remove };
}

/** Makes a model folder with the files of another one, and a configuration of its own if there is one. */
export async function linkModel(from: string, to: string, config: ModelConfig | undefined): Promise<void> {
  await linkFolder(from, to, config === undefined ? undefined : CONFIG_FILE);
  if (config !== undefined)
    await writeFile(join(to, CONFIG_FILE), writePrototxt(withoutPinnedMemory(config)));
}

/**
 * Leaves out the pinned memory, which the completion of a configuration sets to the value that a server assumes anyway.
 * A server without GPU would warn about it.
 */
function withoutPinnedMemory(config: ModelConfig): ModelConfig {
  if (config.optimization === undefined) return config;
  const { inputPinnedMemory: input, outputPinnedMemory: output, ...others } = config.optimization;
  const optimization = {
    ...others,
    ...(input?.enable === false && { inputPinnedMemory: input }),
    ...(output?.enable === false && { outputPinnedMemory: output }),
  };
  return { ...config, optimization };
}

/** @param without name of an entry that is left out */
async function linkFolder(from: string, to: string, without?: string): Promise<void> {
  // At once, so that no folder appears after the cleanup of a process that ends.
  mkdirSync(to, { recursive: true });
  for (const name of await readdir(from)) {
    if (name === without) continue;
    const [source, target] = [join(from, name), join(to, name)];
    if ((await stat(source)).isDirectory()) await linkFolder(source, target);
    else await link(source, target).catch(() => copyFile(source, target));
  }
}

/**
 * Checks that a repository is a folder with these models.
 *
 * @throws TritonError INVALID_ARG for another path, NOT_FOUND for a model that it does not have
 */
export async function checkRepository(path: string, models: readonly string[]): Promise<void> {
  const names = await readdir(path).catch((error: Error) => {
    throw new TritonError(
      "INVALID_ARG",
      `--model-repository: expected a folder of this machine, got '${path}': ${error.message}`,
    );
  });
  const missing = models.find((model) => !names.includes(model));
  if (missing === undefined) return;
  throw new TritonError(
    "NOT_FOUND",
    `-m: expected a model of the repository '${path}' (${names.toSorted().join(", ") || "it is empty"}), got '${missing}'`,
  );
}
