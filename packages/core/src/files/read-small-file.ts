import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { open, stat } from "node:fs/promises";
import { TritonError } from "@tritonjs/protocol";

/** Texts of C's `strerror` for the possible failures of a file. */
const WORDS: Readonly<Record<string, string>> = {
  ENOENT: "No such file or directory",
  ENOTDIR: "Not a directory",
  EISDIR: "Is a directory",
  EACCES: "Permission denied",
  EPERM: "Operation not permitted",
  ELOOP: "Too many levels of symbolic links",
  ENAMETOOLONG: "File name too long",
  ENXIO: "No such device or address",
};

/**
 * Flags for opening files. With O_NONBLOCK, a pipe without a writer opens at once and is then refused, instead of
 * blocking forever.
 */
const READ = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Largest file that is read, in bytes. No configuration or list of labels is that long. */
export const MAX_BYTES = 64 * 1024 * 1024;

/**
 * Reads a file of a model's directory as bytes.
 *
 * @throws TritonError INTERNAL with Triton's text for a file that cannot be read, INVALID_ARG for a file above 64 MiB
 * and for a path that is not a regular file.
 */
export async function readSmallFile(path: string): Promise<Uint8Array> {
  try {
    const file = await open(path, READ);
    try {
      const stats = await file.stat();
      assertFile(path, stats);
      if (stats.size <= MAX_BYTES) return await file.readFile();
      throw new TritonError(
        "INVALID_ARG",
        `cannot read ${path}: expected at most ${MAX_BYTES} bytes, got ${stats.size}`,
        {
          reason: "INVALID_MODEL",
        },
      );
    } finally {
      await file.close();
    }
  } catch (error) {
    throw unreadable(path, error);
  }
}

/**
 * Reads a file synchronously.
 *
 * @throws TritonError INTERNAL with Triton's text for a file that cannot be read, INVALID_ARG for a path that is not a
 * regular file.
 */
export function readFileNow(path: string): Uint8Array {
  try {
    const file = openSync(path, READ);
    try {
      assertFile(path, fstatSync(file));
      return new Uint8Array(readFileSync(file));
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw unreadable(path, error);
  }
}

function assertFile(path: string, stats: Stats): void {
  // Directories pass: reading them fails with the system's own text.
  if (stats.isFile() || stats.isDirectory()) return;
  throw new TritonError("INVALID_ARG", `cannot read ${path}: it is not a regular file`, {
    reason: "INVALID_MODEL",
  });
}

function unreadable(path: string, error: unknown): TritonError {
  if (TritonError.is(error)) return error;
  const text = `failed to open text file for read ${path}: ${errorWords(error)}`;
  return new TritonError("INTERNAL", text, { reason: "FILE_NOT_READABLE", cause: error });
}

/** The operating system's text for a failure. */
export function errorWords(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return (code !== undefined ? WORDS[code] : undefined) ?? TritonError.from(error).message;
}

/** True if the path exists, whatever its kind. */
export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
