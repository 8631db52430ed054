import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { type RepositoryAgent, TritonError } from "@tritonjs/core";
import { open } from "./sealed-file.js";

/** What sealed files end in. */
export const SEALED = ".sealed";

/**
 * Makes a repository agent that loads a model from a directory in which its sealed files are opened. The directory
 * lasts as long as the model is in service.
 *
 * @param keyOf gives the 32 bytes of a key by the name that the parameter `key` has for it
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
