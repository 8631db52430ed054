import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { TritonError } from "@tritonjs/protocol";

/** Where the model of a load request is. */
export interface ArchivePlace {
  /** Directory to register as a repository. */
  readonly repository: string;
  /** Directory of the model in it. */
  readonly directory: string;
}

const ENSEMBLE = /platform:\s*"ensemble"/;
/** System directories. They never hold models, even if the platform names one. */
const SYSTEM = /^\/(dev|proc|sys)(\/|$)/;

/**
 * Finds the model in the directory to which the platform has unpacked an archive: the directory itself if it has a
 * `config.pbtxt`, else its only subdirectory, else the ensemble among its subdirectories.
 *
 * @param root directory of all unpacked archives: `/opt/ml/models`
 * @throws TritonError INVALID_ARG for any other directory, and for one without a model, NOT_FOUND for one that does not
 * exist.
 */
export async function placeOf(url: string, root: string): Promise<ArchivePlace> {
  const path = resolve(url);
  const parts = new RegExp(`^${escaped(resolve(root))}/[0-9A-Za-z._]+/model(/[^/]+)?$`).exec(path);
  if (SYSTEM.test(path) || parts === null)
    throw badUrl(url, `expected a path of the form ${root}/<hash>/model[/<subdir>]`);
  const real = await realpath(path).catch(() => {
    throw new TritonError("NOT_FOUND", `Invalid "url" '${url}': there is no such directory`, {
      reason: "MODEL_FILES_NOT_FOUND",
    });
  });
  if (!real.startsWith(`${await realpath(root)}/`)) throw badUrl(url, `it leads out of ${root}`);
  if (await isFile(join(path, "config.pbtxt")))
    return { repository: dirname(path), directory: basename(path) };
  return { repository: path, directory: await modelIn(path, url) };
}

async function modelIn(path: string, url: string): Promise<string> {
  const entries = await readdir(path, { withFileTypes: true });
  const directories = entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
    .map(({ name }) => name);
  const [only] = directories;
  if (only !== undefined && directories.length === 1) return only;
  for (const directory of directories.sort()) {
    const config = await readFile(join(path, directory, "config.pbtxt"), "utf8").catch(() => "");
    if (ENSEMBLE.test(config)) return directory;
  }
  const found = directories.length === 0 ? "none" : `${directories.join(", ")}, and none is an ensemble`;
  throw badUrl(url, `expected one directory of a model, or an ensemble with its members; got ${found}`);
}

function badUrl(url: string, why: string): TritonError {
  return new TritonError("INVALID_ARG", `Invalid "url" '${url}': ${why}`, { reason: "INVALID_LOAD_REQUEST" });
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
