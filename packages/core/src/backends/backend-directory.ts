import { stat } from "node:fs/promises";
import { join } from "node:path";

/** A program of a backend directory that runs all models of its backend. */
export interface BackendProgram {
  readonly language: "python" | "javascript";
  /** Directory of the backend. */
  readonly directory: string;
  /** Name of the file in it, which `runtime` of a configuration may name. */
  readonly runtime: string;
  readonly path: string;
}

/** The files that make a directory a backend, in the order of the search. */
const PROGRAMS: readonly Pick<BackendProgram, "runtime" | "language">[] = [
  { runtime: "model.py", language: "python" },
  { runtime: "backend.js", language: "javascript" },
  { runtime: "backend.mjs", language: "javascript" },
  { runtime: "backend.ts", language: "javascript" },
];

/** True for a value of `runtime` that names a program of a backend directory. */
export function isProgram(runtime: string): boolean {
  return PROGRAMS.some((program) => program.runtime === runtime);
}

/**
 * Finds the program of a backend: `<root>/<backend>/model.py`, or `backend.js`, `backend.mjs` or `backend.ts`.
 *
 * @param runtime the only file to look for; empty for any
 * @returns undefined without such a file, and for a name that is not the name of a directory
 */
export async function findProgram(
  root: string,
  backend: string,
  runtime: string,
): Promise<BackendProgram | undefined> {
  if (!isDirectoryName(backend)) return undefined;
  const directory = join(root, backend);
  for (const program of PROGRAMS) {
    if (runtime !== "" && runtime !== program.runtime) continue;
    const path = join(directory, program.runtime);
    if (await isFile(path)) return { ...program, directory, path };
  }
  return undefined;
}

/** True if the directory has a backend for tritonserver alone: a shared library. */
export async function hasSharedLibrary(root: string, backend: string): Promise<boolean> {
  return isDirectoryName(backend) && isFile(join(root, backend, `libtriton_${backend}.so`));
}

/** False for a name that leads to another directory, such as `../python`. */
function isDirectoryName(backend: string): boolean {
  return /^[^/\\\0]+$/.test(backend) && backend !== "." && backend !== "..";
}

function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
