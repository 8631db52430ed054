import { realpath } from "node:fs/promises";
import { resolve, sep } from "node:path";
import { TritonError } from "@tritonjs/protocol";

/** True if a path is a directory or below it, by its text alone. */
export function isInside(directory: string, path: string): boolean {
  const base = resolve(directory);
  const target = resolve(path);
  return target === base || target.startsWith(base.endsWith(sep) ? base : base + sep);
}

/**
 * Refuses a path if symbolic links lead out of a directory. A missing file is accepted: opening it will fail.
 *
 * @throws TritonError INVALID_ARG
 */
export async function assertInside(directory: string, path: string): Promise<void> {
  const [base, target] = await Promise.all([realpath(directory), realpath(path).catch(() => undefined)]);
  if (target === undefined || isInside(base, target)) return;
  throw new TritonError(
    "INVALID_ARG",
    `${path} leads out of ${directory} through a symbolic link: copy the file into the directory`,
    { reason: "PATH_NOT_ALLOWED" },
  );
}
