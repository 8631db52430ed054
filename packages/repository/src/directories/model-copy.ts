import { constants, createWriteStream } from "node:fs";
import { copyFile, mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { sleep } from "@tritonjs/core/extension";
import { type ConcurrencyGate, errorFor, TritonError } from "@tritonjs/protocol";
import {
  type CloudObject,
  type CloudPath,
  type CloudStorage,
  cloudError,
  type Patience,
  shownKey,
  statusOf,
  withSilenceLimit,
} from "./cloud-storage.js";
import type { ModelTimes } from "./model-directory.js";

/** A snapshot of a cloud model on this machine. Its files do not change while they are in use. */
export class ModelCopy {
  /** Those of the objects that have been copied so far. */
  readonly #copied: ModelObject[] = [];
  #users = 0;
  #isDropped = false;

  constructor(
    /** Directory with the name of the model, inside a directory of its own. */
    readonly directory: string,
    readonly objects: readonly ModelObject[],
  ) {}

  get root(): string {
    return dirname(this.directory);
  }

  /**
   * Copies all objects into the directory. A failure ends the copy once the downloads that have begun are complete: the
   * next copy can use them.
   *
   * @param previous earlier copies, from which unchanged objects are taken
   * @param permits limits the number of objects that are copied at the same time
   * @throws TritonError INTERNAL for an object that cannot be copied, UNAVAILABLE when the copy is cancelled. The cause
   * has the status 404 or 412 for an object that has changed.
   */
  async fill(
    repository: CloudPath,
    storage: CloudStorage,
    previous: readonly ModelCopy[],
    permits: ConcurrencyGate,
    patience: Patience,
  ): Promise<void> {
    const before = new Map<string, CopiedObject>();
    for (const copy of previous) for (const object of copy.#copied) before.set(object.path, { object, copy });
    await mkdir(this.directory, { recursive: true });
    let problem: TritonError | undefined;
    const copyOne = async (object: ModelObject): Promise<void> => {
      if (problem !== undefined || patience.signal.aborted) return;
      try {
        const path = join(this.directory, object.path);
        await copyObject(path, object, before.get(object.path), storage, patience);
        this.#copied.push(object);
      } catch (error) {
        problem ??= cloudError(`Failed to get object at ${shownKey(repository, object.key)}`, error);
      }
    };
    await Promise.all(this.objects.map((object) => permits.run(() => copyOne(object), undefined)));
    if (patience.signal.aborted) throw TritonError.from(patience.signal.reason, "UNAVAILABLE");
    if (problem !== undefined) throw problem;
  }

  times(configEntry: string): ModelTimes {
    return timesOf(this.objects, configEntry);
  }

  retain(): void {
    this.#users++;
  }

  async release(): Promise<void> {
    this.#users--;
    if (this.#isDropped && this.#users <= 0) await this.#remove();
  }

  /** Marks the copy as obsolete. It is removed with the last version that is made of it. */
  async drop(): Promise<void> {
    this.#isDropped = true;
    if (this.#users <= 0) await this.#remove();
  }

  async #remove(): Promise<void> {
    await rm(this.root, { recursive: true, force: true }).catch(() => {});
  }
}

export interface ModelObject extends CloudObject {
  /** Path in the model's directory, with slashes; empty for the directory itself. */
  readonly path: string;
}

export interface ModelListing {
  readonly name: string;
  /** Ordered by path. */
  readonly objects: readonly ModelObject[];
  /** Why the model cannot be copied. */
  readonly problem: TritonError | undefined;
}

/** Groups objects by model. A model is a folder of the repository that is not hidden. */
export function groupByModel(
  repository: CloudPath,
  objects: readonly CloudObject[],
): Map<string, ModelListing> {
  const models = new Map<
    string,
    { name: string; objects: ModelObject[]; problem: TritonError | undefined }
  >();
  for (const object of objects) {
    const relative = object.key.slice(repository.prefix.length);
    const end = relative.indexOf("/");
    const name = end < 0 && object.isFolder ? relative : relative.slice(0, Math.max(0, end));
    if (name === "" || name.startsWith(".") || !isName(name)) continue;
    const model = models.get(name) ?? { name, objects: [], problem: undefined };
    models.set(name, model);
    const path = relative.slice(name.length + 1).replace(/\/$/, "");
    if (path !== "" && !path.split("/").every(isName)) {
      model.problem ??= errorFor(
        "INVALID_REPOSITORY",
        `object '${shownKey(repository, object.key)}' has an invalid path in the directory of model '${name}': rename or remove it`,
      );
    }
    model.objects.push({ ...object, path });
  }
  for (const { objects } of models.values()) objects.sort((a, b) => (a.path < b.path ? -1 : 1));
  return models;
}

/** Whether a name can be a file inside a directory on any system. A name that leads out of the directory cannot. */
export function isName(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && !/[/\\\0]/.test(name);
}

export function isSame(before: readonly ModelObject[], now: readonly ModelObject[]): boolean {
  return (
    before.length === now.length && before.every((object, i) => signatureOf(object) === signatureOf(now[i]!))
  );
}

/** The state of a model, in the form that `readModelTimes` returns for a directory. */
function timesOf(objects: readonly ModelObject[], configEntry: string): ModelTimes {
  const entries = new Map<string, string[]>();
  for (const object of objects) {
    const [entry = ""] = object.path.split("/");
    const signatures = entries.get(entry) ?? [];
    entries.set(entry, signatures);
    signatures.push(signatureOf(object));
  }
  const versions = new Map<string, string>();
  const others: string[] = [];
  let config = "";
  for (const [entry, signatures] of entries) {
    const signature = signatures.join("\n");
    if (/^\d+$/.test(entry)) versions.set(entry, signature);
    else if (entry === configEntry) config = signature;
    else if (entry !== "") others.push(signature);
  }
  return { versions, config, others: others.join("\n") };
}

function signatureOf({ path, etag, sizeBytes, isFolder }: ModelObject): string {
  return isFolder ? `${path}/` : `${path} ${sizeBytes} ${etag}`;
}

/** The environment variables that tell Triton where to put copies. */
const MOUNT_DIRECTORY: Readonly<Record<CloudPath["scheme"], string>> = {
  s3: "TRITON_AWS_MOUNT_DIRECTORY",
  gs: "TRITON_GCS_MOUNT_DIRECTORY",
  as: "TRITON_AZURE_MOUNT_DIRECTORY",
};

/** Makes the directory for the copies of a repository. @throws TritonError INTERNAL if it cannot be made */
export async function makeCopyDirectory({ scheme }: CloudPath): Promise<string> {
  const variable = MOUNT_DIRECTORY[scheme];
  const parent = process.env[variable] || tmpdir();
  try {
    return await realpath(await mkdtemp(join(parent, "tritonjs-")));
  } catch (cause) {
    const why = TritonError.from(cause).message;
    const text = `cannot make a directory for copies of cloud repositories in ${parent}: ${why}; set ${variable} to use another place`;
    throw errorFor("FILE_NOT_READABLE", text, { cause });
  }
}

const ATTEMPTS = 3;
const FIRST_PAUSE_MS = 200;

/** An object, and where it was copied before. */
interface CopiedObject {
  readonly object: ModelObject;
  readonly copy: ModelCopy;
}

async function copyObject(
  path: string,
  object: ModelObject,
  old: CopiedObject | undefined,
  storage: CloudStorage,
  patience: Patience,
): Promise<void> {
  if (object.isFolder) {
    await mkdir(path, { recursive: true });
    return;
  }
  await mkdir(dirname(path), { recursive: true });
  const isKept = old !== undefined && isSame([old.object], [object]);
  if (isKept && (await copyFromPrevious(path, object, old.copy))) return;
  for (let attempt = 1; ; attempt++) {
    try {
      await download(path, object, storage, patience);
      return;
    } catch (error) {
      if (attempt === ATTEMPTS || patience.signal.aborted || !isRetriable(error)) throw error;
      await rm(path, { force: true });
      await sleep(patience.clock, FIRST_PAUSE_MS * 2 ** (attempt - 1));
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

async function download(
  path: string,
  object: ModelObject,
  storage: CloudStorage,
  patience: Patience,
): Promise<void> {
  await withSilenceLimit(patience, async (signal, alive) => {
    const contents = await storage.download(object, signal);
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
      throw errorFor("FILE_NOT_READABLE", `expected ${object.sizeBytes} bytes, got ${bytes}`);
    }
  });
}

/** Whether a retry may succeed: after a broken connection, but not after a refusal or on a full disk. */
function isRetriable(error: unknown): boolean {
  const status = statusOf(error);
  if (status !== undefined && status >= 400 && status < 500) return false;
  const { code } = error as NodeJS.ErrnoException;
  return !["ENOSPC", "EEXIST", "EISDIR", "ENOTDIR", "ENAMETOOLONG", "EACCES", "EROFS"].includes(String(code));
}
