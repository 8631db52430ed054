import { constants, createWriteStream } from "node:fs";
import { copyFile, mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { TritonError } from "@tritonjs/protocol";
import { sleep } from "../../clock/sleep.js";
import type { Semaphore } from "../semaphore.js";
import { cloudError, statusOf } from "./cloud-error.js";
import type { CloudStorage } from "./cloud-storage.js";
import type { ModelCopy } from "./model-copy.js";
import { isSame, type ModelObject } from "./model-listing.js";
import { type Patience, withSilenceLimit } from "./silence-limit.js";

const ATTEMPTS = 3;
const FIRST_PAUSE_MS = 200;

/** The parameters of a copy. */
export interface CopyContext extends Patience {
  readonly storage: CloudStorage;
  /** Limits the number of objects that are copied at the same time. */
  readonly permits: Semaphore;
  /** The previous copy. Unchanged objects are taken from it. */
  readonly previous: ModelCopy | undefined;
  /** The path of an object for display. */
  readonly shown: (key: string) => string;
}

/**
 * Copies all objects into a directory, or none. After a failure, nothing is written there any more.
 *
 * @throws TritonError INTERNAL for an object that cannot be copied, UNAVAILABLE when the copy is cancelled. The cause
 * has the status 404 or 412 for an object that has changed.
 */
export async function copyModel(
  directory: string,
  objects: readonly ModelObject[],
  context: CopyContext,
): Promise<void> {
  const stop = new AbortController();
  const signal = AbortSignal.any([context.signal, stop.signal]);
  const before = new Map(context.previous?.objects.map((object) => [object.path, object]));
  await mkdir(directory, { recursive: true });
  let problem: TritonError | undefined;
  await Promise.all(
    objects.map((object) =>
      context.permits.run(async () => {
        if (signal.aborted) return;
        const old = before.get(object.path);
        await copyObject(directory, object, old, { ...context, signal }).catch((error) => {
          problem ??= cloudError(`Failed to get object at ${context.shown(object.key)}`, error);
          stop.abort(problem);
        });
      }),
    ),
  );
  if (context.signal.aborted) throw TritonError.from(context.signal.reason, "UNAVAILABLE");
  if (problem !== undefined) throw problem;
}

async function copyObject(
  directory: string,
  object: ModelObject,
  old: ModelObject | undefined,
  context: CopyContext,
): Promise<void> {
  const path = join(directory, object.path);
  if (object.isFolder) {
    await mkdir(path, { recursive: true });
    return;
  }
  await mkdir(dirname(path), { recursive: true });
  const isKept = old !== undefined && isSame([old], [object]);
  if (isKept && (await copyFromPrevious(path, object, context.previous!))) return;
  for (let attempt = 1; ; attempt++) {
    try {
      await download(path, object, context);
      return;
    } catch (error) {
      if (attempt === ATTEMPTS || context.signal.aborted || !mayPass(error)) throw error;
      await rm(path, { force: true });
      await sleep(context.clock, FIRST_PAUSE_MS * 2 ** (attempt - 1));
    }
  }
}

function copyFromPrevious(path: string, object: ModelObject, previous: ModelCopy): Promise<boolean> {
  // A copy, not a link, because models may write to their files.
  const how = constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL;
  return copyFile(join(previous.directory, object.path), path, how).then(
    () => true,
    () => false,
  );
}

async function download(path: string, object: ModelObject, context: CopyContext): Promise<void> {
  await withSilenceLimit(context, async (signal, alive) => {
    const contents = await context.storage.download(object, signal);
    let bytes = 0;
    const counted = new Transform({
      transform(chunk: Buffer, _, done) {
        alive();
        bytes += chunk.length;
        done(null, chunk);
      },
    });
    await pipeline(contents, counted, createWriteStream(path, { flags: "wx" }), { signal });
    if (bytes !== object.sizeBytes) {
      throw new TritonError("INTERNAL", `expected ${object.sizeBytes} bytes, got ${bytes}`, {
        reason: "FILE_NOT_READABLE",
      });
    }
  });
}

/** Whether a retry may succeed: after a broken connection, but not after a refusal or on a full disk. */
function mayPass(error: unknown): boolean {
  const status = statusOf(error);
  if (status !== undefined && status >= 400 && status < 500) return false;
  const { code } = error as NodeJS.ErrnoException;
  return !["ENOSPC", "EEXIST", "EISDIR", "ENOTDIR", "ENAMETOOLONG", "EACCES", "EROFS"].includes(String(code));
}
