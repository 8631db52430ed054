import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { TritonError } from "@tritonjs/core";
import type { RepositoryAgent } from "@tritonjs/repository";
import { open } from "./sealed-file.js";

/** Suffix of sealed files. */
export const SEALED = ".sealed";

/**
 * Makes a repository agent that decrypts a model's sealed files into a directory and loads the model from it. The
 * directory exists while the model is in service.
 *
 * @param keyOf returns the 32 bytes of a key by its name, the value of the parameter `key`
 */
export function decryptWith(keyOf: (name: string) => Uint8Array | undefined): RepositoryAgent {
  return async (action, { modelName, location, parameters, replaceLocation }) => {
    if (action !== "LOAD") return;
    const key = keyOf(parameters.key ?? "");
    if (key === undefined) throw new TritonError("INVALID_ARG", `there is no key '${parameters.key}'`);
    const target = await replaceLocation();
    for (const entry of await readdir(location, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const from = join(entry.parentPath ?? entry.path, entry.name);
      const path = relative(location, from);
      const to = join(target, path);
      await mkdir(dirname(to), { recursive: true });
      if (!path.endsWith(SEALED)) {
        await copyFile(from, to);
        continue;
      }
      const name = path.slice(0, -SEALED.length).split(sep).join("/");
      try {
        await writeFile(to.slice(0, -SEALED.length), open(key, name, await readFile(from)), { mode: 0o600 });
      } catch {
        throw new TritonError(
          "INVALID_ARG",
          `'${name}' of model '${modelName}' cannot be opened with its key`,
        );
      }
    }
  };
}
