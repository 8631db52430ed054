import type { Readable } from "node:stream";
import { errorFor, TritonError } from "@tritonjs/protocol";
import type { Clock } from "../system/clock.js";

export interface CloudPath {
  /** The path for display, without redundant slashes. */
  readonly text: string;
  readonly scheme: "s3" | "gs" | "as";
  /** Server of S3 that the path names; storage account or host of Azure; otherwise empty. */
  readonly host: string;
  readonly bucket: string;
  /** Prefix of the repository's keys: empty, or with a slash at its end. */
  readonly prefix: string;
}

/** Whether a path begins with `s3://`, `gs://` or `as://`. */
export function isCloudPath(path: string): boolean {
  return /^(s3|gs|as):\/\//.test(path);
}

/**
 * Parses a cloud path: `s3://bucket/path`, `s3://host:port/bucket/path`, `s3://https://host:port/bucket/path`,
 * `gs://bucket/path`, `as://account/container/path`, `as://account.blob.core.windows.net/container/path`.
 *
 * @throws TritonError INVALID_ARG for a path without a bucket
 */
export function parseCloudPath(path: string): CloudPath {
  const scheme = path.slice(0, 2) as CloudPath["scheme"];
  const [, protocol = "", rest = ""] = /^(https?:\/\/)?(.*)$/s.exec(path.slice("s3://".length)) ?? [];
  const parts = rest
    .replace(scheme === "as" ? /\?.*$/s : /$^/, "")
    .split("/")
    .filter((part) => part !== "");
  const hasHost = scheme === "as" || (scheme === "s3" && (protocol !== "" || /:\d+$/.test(parts[0] ?? "")));
  const host = hasHost ? (parts.shift() ?? "") : "";
  const [bucket = "", ...folders] = parts;
  if (bucket === "" || (hasHost && host === "") || (scheme !== "s3" && protocol !== "")) {
    const form = scheme === "as" ? "as://account/container/path" : `${scheme}://bucket/path`;
    throw errorFor(
      "INVALID_REPOSITORY",
      `No bucket name found in path: ${path} (expected a path as ${form})`,
    );
  }
  const address = scheme === "s3" && hasHost ? `${protocol || "http://"}${host}` : host;
  const shown = scheme === "s3" && hasHost ? `${protocol}${host}` : host;
  const text = `${scheme}://${[...(hasHost ? [shown] : []), bucket, ...folders].join("/")}`;
  return { text, scheme, host: address, bucket, prefix: folders.map((folder) => `${folder}/`).join("") };
}

/** A file in a cloud. */
export interface CloudObject {
  readonly key: string;
  readonly sizeBytes: number;
  /** Changes with the contents. */
  readonly etag: string;
  /** True for an object that represents a folder. Some tools write such objects. */
  readonly isFolder: boolean;
}

interface CloudPage {
  readonly objects: readonly CloudObject[];
  /** Prefixes that end at the next slash; empty unless `byFolder` is set. */
  readonly folders: readonly string[];
  /** Token of the next page; undefined for the last page. */
  readonly next: string | undefined;
}

interface ListOptions {
  /** Groups the keys by the next slash after the prefix. */
  readonly byFolder: boolean;
  /** Token of the page: `next` of the previous page. */
  readonly from: string | undefined;
  readonly signal: AbortSignal;
}

/** A bucket of a vendor. Its methods throw the errors of the SDK. */
export interface CloudStorage {
  list(prefix: string, options: ListOptions): Promise<CloudPage>;
  /** Reads the contents of an object. Fails with status 404 or 412 when the object has changed. */
  download(object: CloudObject, signal: AbortSignal): Promise<Readable>;
  close(): void;
}

/** Limit on the files of a repository. A path with more files is not a repository. */
export const MAX_OBJECTS = 1_000_000;

export interface Listing {
  readonly objects: readonly CloudObject[];
  readonly folders: readonly string[];
}

/**
 * Lists all objects under a prefix. With `byFolder` it lists those up to the next slash, and the rest as folders.
 *
 * @throws TritonError INTERNAL with Triton's text when the prefix cannot be read, UNAVAILABLE when cancelled
 */
export async function listObjects(
  storage: CloudStorage,
  path: CloudPath,
  prefix: string,
  patience: Patience,
  byFolder = false,
): Promise<Listing> {
  const objects: CloudObject[] = [];
  const folders: string[] = [];
  const shown = shownKey(path, prefix);
  let from: string | undefined;
  try {
    do {
      const page = await withSilenceLimit(patience, (signal) =>
        storage.list(prefix, { byFolder, from, signal }),
      );
      objects.push(...page.objects);
      folders.push(...page.folders);
      from = page.next;
      if (objects.length > MAX_OBJECTS) {
        throw errorFor(
          "INVALID_REPOSITORY",
          `cannot list ${shown}: expected at most ${MAX_OBJECTS} objects, got more`,
        );
      }
    } while (from !== undefined);
  } catch (error) {
    throw cloudError(`Could not list contents of directory at ${shown}`, error);
  }
  return { objects, folders };
}

export function shownKey({ text, prefix }: CloudPath, key: string): string {
  const bucket = text.slice(0, text.length + 1 - prefix.length);
  return `${prefix === "" ? `${text}/` : bucket}${key}`.replace(/\/$/, "");
}

/** Longest wait without progress, in milliseconds. */
export const MAX_SILENCE_MS = 30_000;

export interface Patience {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * Waits for work of an SDK. The wait ends when `signal` aborts and after half a minute without progress, even if the
 * SDK ignores the signal.
 *
 * @throws TritonError UNAVAILABLE when the work is cancelled
 */
export async function withSilenceLimit<T>(
  { clock, signal }: Patience,
  work: (signal: AbortSignal, alive: () => void) => Promise<T>,
): Promise<T> {
  const own = new AbortController();
  let lastSign = clock.now();
  let timer: { cancel(): void } | undefined;
  const watch = (afterMs: number) => {
    timer = clock.setTimer(afterMs, () => {
      const leftMs = lastSign + MAX_SILENCE_MS - clock.now();
      if (leftMs > 0) watch(leftMs);
      else own.abort(errorFor("STORAGE_TIMEOUT", `no answer for ${MAX_SILENCE_MS / 1000} seconds`));
    });
  };
  const onAbort = () => own.abort(signal.reason);
  if (signal.aborted) throw TritonError.from(signal.reason, "UNAVAILABLE");
  signal.addEventListener("abort", onAbort);
  const givenUp = new Promise<never>((_, reject) => {
    own.signal.addEventListener("abort", () => reject(TritonError.from(own.signal.reason, "UNAVAILABLE")));
  });
  watch(MAX_SILENCE_MS);
  try {
    const done = work(own.signal, () => {
      lastSign = clock.now();
    });
    // The result of cancelled work is ignored.
    done.catch(() => {});
    return await Promise.race([done, givenUp]);
  } finally {
    timer?.cancel();
    signal.removeEventListener("abort", onAbort);
  }
}

/** The error of an object that has changed since it was listed. */
export class ObjectChanged extends Error {
  readonly statusCode = 412;

  constructor(key: string) {
    super(`object ${key} changed while it was copied`);
  }
}

/** The HTTP status in an error of a vendor's SDK. Each SDK has it in a different place. */
export function statusOf(error: unknown): number | undefined {
  const { $metadata, statusCode, code } = (error ?? {}) as {
    readonly $metadata?: { readonly httpStatusCode?: unknown };
    readonly statusCode?: unknown;
    readonly code?: unknown;
  };
  const found = [$metadata?.httpStatusCode, statusCode, code].find((value) => typeof value === "number");
  return found as number | undefined;
}

/** The error of a failed action with a vendor's SDK, in Triton's text. */
export function cloudError(tried: string, error: unknown): TritonError {
  if (TritonError.is(error)) {
    return new TritonError(error.code, `${tried}: ${error.message}`, { reason: error.reason, cause: error });
  }
  const { name = "Error", message } = deepest(error);
  const status = statusOf(error);
  // Some answers have no message besides their status.
  const words = [...new Set([message, ...(status === undefined ? [] : [`HTTP status ${status}`])])].filter(
    (word) => word !== undefined && word !== "" && word !== "UnknownError",
  );
  const text = `${tried} due to exception: ${name}, error message: ${words.join(", ") || "none"}`;
  return errorFor("FILE_NOT_READABLE", text, { cause: error });
}

/** Finds the innermost error. A failed connection is one error for each address, inside an error without a message. */
function deepest(error: unknown): { readonly name?: string; readonly message?: string } {
  if (error instanceof AggregateError && error.message === "" && error.errors.length > 0) {
    return deepest(error.errors[0]);
  }
  return error instanceof Error ? error : { message: String(error) };
}
