import { open, stat } from "node:fs/promises";
import { TritonError } from "../errors/triton-error.js";

/** The words of C's `strerror` for what can happen to a file. */
const WORDS: Readonly<Record<string, string>> = {
  ENOENT: "No such file or directory",
  ENOTDIR: "Not a directory",
  EISDIR: "Is a directory",
  EACCES: "Permission denied",
  EPERM: "Operation not permitted",
  ELOOP: "Too many levels of symbolic links",
  ENAMETOOLONG: "File name too long",
};

/** No configuration or list of labels is this long: it is not read at all. */
const MAX_BYTES = 64 * 1024 * 1024;

/**
 * Reads a file of a model's directory as bytes.
 *
 * @throws TritonError INTERNAL with Triton's text for one that cannot be read, INVALID_ARG for one beyond all measure.
 */
export async function readSmallFile(path: string): Promise<Uint8Array> {
  try {
    const file = await open(path, "r");
    try {
      const { size } = await file.stat();
      if (size <= MAX_BYTES) return await file.readFile();
      throw new TritonError("INVALID_ARG", `file ${path} has ${size} bytes, more than ${MAX_BYTES}`);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (TritonError.is(error)) throw error;
    throw new TritonError("INTERNAL", `failed to open text file for read ${path}: ${errorWords(error)}`, {
      cause: error,
    });
  }
}

/** What the operating system says of a failure. */
export function errorWords(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return (code !== undefined ? WORDS[code] : undefined) ?? TritonError.from(error).message;
}

/** True when there is something at the path, whatever it is. */
export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
