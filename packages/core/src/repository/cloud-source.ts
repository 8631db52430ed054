import { resolve } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import type { Log } from "../observe/log.js";
import type { Clock } from "../system/clock.js";
import {
  type CloudPath,
  type CloudStorage,
  isCloudPath,
  type Listing,
  listObjects,
  parseCloudPath,
  shownKey,
  statusOf,
} from "./cloud-storage.js";
import { Semaphore } from "./locks.js";
import { Copies, groupByModel, isSame, type ModelCopy, type ModelListing } from "./model-copy.js";
import { openStorage } from "./open-storage.js";
import { LocalSource, type ModelPlace, type RepositorySource } from "./repository-source.js";

/** Most objects of a repository that are copied at the same time, and most lists that are read at the same time. */
const AT_ONCE = 8;

/** Attempts to copy a model that changes during the copy. */
const ATTEMPTS = 3;

/** The known state of a model. */
interface KnownModel {
  /** The last copy. */
  readonly copy?: ModelCopy | undefined;
  /** Why a later copy failed. */
  readonly problem?: TritonError | undefined;
}

/** The parts that a repository in a cloud needs. */
interface CloudSourceContext {
  readonly clock: Clock;
  readonly log: Log;
  /** Opens the storage. @default the vendors' SDKs */
  readonly open?: ((path: CloudPath) => Promise<CloudStorage>) | undefined;
}

/** A repository in a cloud. A model is copied at the first look, and again when one of its ETags has changed. */
export class CloudSource implements RepositorySource {
  readonly isRemote = true;
  readonly path: string;
  readonly #path: CloudPath;
  readonly #context: CloudSourceContext;
  readonly #copies: Copies;
  readonly #copying = new Semaphore(AT_ONCE);
  readonly #listing = new Semaphore(AT_ONCE);
  readonly #stop = new AbortController();
  readonly #models = new Map<string, KnownModel>();
  /** Why the state of models is unknown, for models requested by name. */
  readonly #unknown = new Map<string, TritonError>();
  /** Updates in flight by model. Updates of one model run in the order of their requests. */
  readonly #underWay = new Map<string, Promise<void>>();
  #names: readonly string[] = [];
  #problem: TritonError | undefined;
  #storage: Promise<CloudStorage> | undefined;

  constructor(path: CloudPath, context: CloudSourceContext) {
    this.#path = path;
    this.path = path.text;
    this.#context = context;
    this.#copies = new Copies(path);
  }

  async check(): Promise<void> {
    const { objects, folders } = await this.#list(this.#path.prefix, true);
    if (objects.length > 0 || folders.length > 0 || this.#path.prefix === "") return;
    throw new TritonError("INVALID_ARG", `repository path ${this.path} is not a valid directory`, {
      reason: "INVALID_REPOSITORY",
    });
  }

  async refresh(names?: readonly string[]): Promise<void> {
    if (names !== undefined) {
      await Promise.all(names.filter(isName).map((name) => this.#update(name)));
      return;
    }
    try {
      const { objects } = await this.#list(this.#path.prefix);
      const listings = groupByModel(this.#path, objects);
      await Promise.all([...listings.values()].map((listing) => this.#update(listing.name, listing)));
      this.#names = [...listings.keys()].sort();
      for (const name of this.#models.keys()) if (!listings.has(name)) this.#models.delete(name);
      this.#problem = undefined;
    } catch (error) {
      this.#problem = TritonError.from(error);
    }
  }

  async names(): Promise<readonly string[]> {
    if (this.#problem !== undefined) throw this.#problem;
    return this.#names;
  }

  async has(name: string): Promise<boolean> {
    return this.#models.has(name);
  }

  problemOf(name: string): TritonError | undefined {
    return this.#unknown.get(name);
  }

  async open(name: string): Promise<ModelPlace> {
    const { copy, problem } = this.#models.get(name) ?? {};
    if (problem !== undefined) throw problem;
    if (copy !== undefined) return { root: copy.root, directory: copy.directory, copy };
    throw new TritonError("NOT_FOUND", `model '${name}' is not in ${this.path}`, {
      reason: "MODEL_FILES_NOT_FOUND",
    });
  }

  async listed(): Promise<readonly string[]> {
    const { prefix } = this.#path;
    const listing = await this.#list(prefix, true).catch((error) => {
      this.#context.log.warning(TritonError.from(error).message);
      return undefined;
    });
    if (listing === undefined) return [...new Set([...this.#names, ...this.#models.keys()])].sort();
    const names = listing.folders.map((folder) => folder.slice(prefix.length).replace(/\/$/, ""));
    return names.filter((name) => isName(name) && !name.startsWith(".")).sort();
  }

  sweep(known: ReadonlySet<ModelCopy>): void {
    const newest = new Set([...this.#models.values()].map(({ copy }) => copy));
    this.#unknown.clear();
    this.#copies.keep((copy) => newest.has(copy) || known.has(copy));
  }

  abort(): void {
    this.#stop.abort(new TritonError("UNAVAILABLE", "the server is closing", { reason: "SERVER_STOPPING" }));
  }

  async close(): Promise<void> {
    this.abort();
    await Promise.all(this.#underWay.values());
    const storage = await this.#storage?.catch(() => undefined);
    storage?.close();
    await this.#copies.close();
  }

  /**
   * Copies a model unless the last copy is current.
   *
   * @param listing the current objects of the model; listed when left out
   */
  #update(name: string, listing?: ModelListing): Promise<void> {
    const before = this.#underWay.get(name) ?? Promise.resolve();
    const update = before.then(async () => {
      let found = listing;
      try {
        found ??= await this.#listModel(name);
        await this.#copy(name, found);
        this.#unknown.delete(name);
      } catch (error) {
        const problem = TritonError.from(error);
        const known = this.#models.get(name);
        if (known === undefined && found === undefined) this.#unknown.set(name, problem);
        else this.#models.set(name, { copy: known?.copy, problem });
      }
    });
    this.#underWay.set(name, update);
    return update.finally(() => {
      if (this.#underWay.get(name) === update) this.#underWay.delete(name);
    });
  }

  async #copy(name: string, first: ModelListing | undefined): Promise<void> {
    const previous = this.#models.get(name)?.copy;
    for (let listing = first, attempt = 1; ; attempt++) {
      if (listing === undefined) {
        this.#models.delete(name);
        return;
      }
      if (listing.problem !== undefined) throw listing.problem;
      if (previous !== undefined && isSame(previous.objects, listing.objects)) {
        this.#models.set(name, { copy: previous });
        return;
      }
      try {
        this.#models.set(name, { copy: await this.#make(listing, previous) });
        return;
      } catch (error) {
        const hasChanged = [404, 412].includes(statusOf((error as Error).cause) ?? 0);
        if (!hasChanged || attempt === ATTEMPTS) throw error;
        listing = await this.#listModel(name);
      }
    }
  }

  async #make(listing: ModelListing, previous: ModelCopy | undefined): Promise<ModelCopy> {
    const { clock, log } = this.#context;
    const started = clock.now();
    const copy = await this.#copies.make(listing, {
      clock,
      signal: this.#stop.signal,
      storage: await this.#open(),
      permits: this.#copying,
      previous,
      shown: (key) => shownKey(this.#path, key),
    });
    const seconds = ((clock.now() - started) / 1000).toFixed(1);
    log.info(`copied model '${listing.name}' from ${this.path} in ${seconds} s`);
    return copy;
  }

  async #listModel(name: string): Promise<ModelListing | undefined> {
    const { objects } = await this.#list(`${this.#path.prefix}${name}/`);
    return groupByModel(this.#path, objects).get(name);
  }

  #list(prefix: string, byFolder = false): Promise<Listing> {
    const patience = { clock: this.#context.clock, signal: this.#stop.signal };
    return this.#listing.run(async () => {
      try {
        return await listObjects(await this.#open(), this.#path, prefix, patience, byFolder);
      } catch (error) {
        // A new storage reads the credentials again, so that a correction takes effect.
        this.#storage = undefined;
        throw error;
      }
    });
  }

  #open(): Promise<CloudStorage> {
    const { open = openStorage } = this.#context;
    this.#storage ??= open(this.#path);
    return this.#storage;
  }
}

/** Whether a name can be the folder of a model. */
function isName(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && !/[/\\\0]/.test(name);
}

/**
 * Opens the repositories at paths, each once, in the given order.
 *
 * @throws TritonError INVALID_ARG for an invalid cloud path
 */
export function openSources(paths: readonly string[], context: CloudSourceContext): RepositorySource[] {
  const places = new Map<string, CloudPath | undefined>();
  for (const path of paths) {
    const cloud = isCloudPath(path) ? parseCloudPath(path) : undefined;
    // An empty path is not a directory; resolved, it would be the current one.
    places.set(cloud?.text ?? (path === "" ? path : resolve(path)), cloud);
  }
  return [...places].map(([path, cloud]) =>
    cloud === undefined ? new LocalSource(path) : new CloudSource(cloud, context),
  );
}
