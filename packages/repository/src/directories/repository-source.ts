import { mkdir, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Clock, Log } from "@tritonjs/core/extension";
import { exists } from "@tritonjs/core/internal";
import { ConcurrencyGate, errorFor, TritonError } from "@tritonjs/protocol";
import {
  type CloudPath,
  type CloudStorage,
  isCloudPath,
  type Listing,
  listObjects,
  openStorage,
  type Patience,
  parseCloudPath,
  statusOf,
} from "./cloud-storage.js";
import {
  groupByModel,
  isName,
  isSame,
  ModelCopy,
  type ModelListing,
  makeCopyDirectory,
} from "./model-copy.js";
import { modelNames } from "./model-directory.js";

/** Where the files of a model are. */
export interface ModelPaths {
  /** Directory that links may not lead out of. */
  readonly root: string;
  readonly directory: string;
  /** Set when the directory is a copy of a remote model. */
  readonly copy?: ModelCopy | undefined;
  /** Whether the model has another name than its directory. The name in its configuration does not count then. */
  readonly isRenamed?: boolean;
}

/** One model repository: a directory, or a remote store that is copied into directories. */
export interface RepositorySource {
  readonly path: string;
  /** Whether its models have to be copied to this machine before a poll. */
  readonly isRemote: boolean;

  /** Rejects when the repository cannot be reached, or is not a directory. */
  check(): Promise<void>;

  /** Copies models to this machine: the named ones, or all. The methods below report failures. */
  refresh(names?: readonly string[]): Promise<void>;

  /** Names of the models, as of the last refresh. @throws TritonError when they could not be read */
  names(): Promise<readonly string[]>;

  /** Whether the repository has a model of the name, as of the last refresh. */
  has(name: string): Promise<boolean>;

  /** Why the state of a model is unknown, including whether it exists. */
  problemOf(name: string): TritonError | undefined;

  /** The files of a model, as of the last refresh. Rejects with the reason if there are none. */
  open(name: string): Promise<ModelPaths>;

  /** Current names of the models for the index, if they can be read. */
  listed(): Promise<readonly string[]>;

  /** Removes copies that no version is made of, except the current ones and the given ones. */
  sweep(known: ReadonlySet<ModelCopy>): void;

  /** Cancels copies in flight, and rejects later ones. */
  abort(): void;

  close(): Promise<void>;
}

/** A directory of models, which are served in place. */
export class LocalSource implements RepositorySource {
  readonly isRemote = false;

  constructor(readonly path: string) {}

  async check(): Promise<void> {
    const found = await stat(this.path).catch(() => undefined);
    if (found === undefined) throw errorFor("FILE_NOT_READABLE", `failed to stat file ${this.path}`);
    if (!found.isDirectory()) {
      throw errorFor("INVALID_REPOSITORY", `repository path ${this.path} is not a valid directory`);
    }
  }

  async refresh(): Promise<void> {}

  names(): Promise<readonly string[]> {
    return modelNames(this.path);
  }

  has(name: string): Promise<boolean> {
    return exists(join(this.path, name));
  }

  problemOf(): undefined {}

  async open(name: string): Promise<ModelPaths> {
    return { root: this.path, directory: join(this.path, name) };
  }

  listed(): Promise<readonly string[]> {
    return modelNames(this.path).catch(() => []);
  }

  sweep(): void {}

  abort(): void {}

  async close(): Promise<void> {}
}

/** A directory of models, some of which are served under names other than those of their directories. */
export class MappedSource extends LocalSource {
  /** @param directories directories by the names of their models; a directory that is not listed names its model */
  constructor(
    path: string,
    /** Directories by the names of their models. */
    private readonly directories: ReadonlyMap<string, string>,
  ) {
    super(path);
  }

  override async names(): Promise<readonly string[]> {
    const renamed = new Set(this.directories.values());
    const others = (await super.names()).filter((directory) => !renamed.has(directory));
    return [...this.directories.keys(), ...others].sort();
  }

  override async has(name: string): Promise<boolean> {
    const directory = this.directories.get(name);
    if (directory !== undefined) return super.has(directory);
    return ![...this.directories.values()].includes(name) && (await super.has(name));
  }

  override async open(name: string): Promise<ModelPaths> {
    const directory = this.directories.get(name);
    if (directory === undefined) return super.open(name);
    return { root: this.path, directory: join(this.path, directory), isRenamed: true };
  }

  override listed(): Promise<readonly string[]> {
    return this.names().catch(() => []);
  }
}

/** Most objects of a repository that are copied at the same time, and most lists that are read at the same time. */
const AT_ONCE = 8;

/** Attempts to copy a model that changes during the copy. */
const ATTEMPTS = 3;

interface KnownModel {
  readonly copy?: ModelCopy | undefined;
  readonly problem?: TritonError | undefined;
}

/** A repository in a cloud. A model is copied at the first look, and again when one of its ETags has changed. */
export class CloudSource implements RepositorySource {
  readonly isRemote = true;
  readonly path: string;
  readonly #path: CloudPath;
  readonly #copies = new Set<ModelCopy>();
  #directory: Promise<string> | undefined;
  #copiesMade = 0;
  readonly #copying = new ConcurrencyGate(AT_ONCE, Number.POSITIVE_INFINITY);
  readonly #listing = new ConcurrencyGate(AT_ONCE, Number.POSITIVE_INFINITY);
  readonly #stop = new AbortController();
  readonly #models = new Map<string, KnownModel>();
  /** Files that failed copies have downloaded, by model. The next attempt does not download it again. */
  readonly #partial = new Map<string, ModelCopy>();
  /** Why the state of models is unknown, for models requested by name. */
  readonly #unknown = new Map<string, TritonError>();
  /** Updates in flight by model. Updates of one model run in the order of their requests. */
  readonly #updates = new Map<string, Promise<void>>();
  #names: readonly string[] = [];
  #problem: TritonError | undefined;
  #storage: Promise<CloudStorage> | undefined;

  /** @param connect opens the storage */
  constructor(
    path: CloudPath,
    private readonly clock: Clock,
    private readonly log: Log,
    private readonly connect: (path: CloudPath) => Promise<CloudStorage> = openStorage,
  ) {
    this.#path = path;
    this.path = path.text;
  }

  async check(): Promise<void> {
    const { objects, folders } = await this.#list(this.#path.prefix, true);
    if (objects.length > 0 || folders.length > 0 || this.#path.prefix === "") return;
    throw errorFor("INVALID_REPOSITORY", `repository path ${this.path} is not a valid directory`);
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
      for (const name of this.#models.keys()) if (!listings.has(name)) this.#forget(name);
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

  async open(name: string): Promise<ModelPaths> {
    const { copy, problem } = this.#models.get(name) ?? {};
    if (problem !== undefined) throw problem;
    if (copy !== undefined) return { root: copy.root, directory: copy.directory, copy };
    throw errorFor("MODEL_FILES_NOT_FOUND", `model '${name}' is not in ${this.path}`);
  }

  async listed(): Promise<readonly string[]> {
    const { prefix } = this.#path;
    const listing = await this.#list(prefix, true).catch((error) => {
      this.log.warning(TritonError.from(error).message);
      return undefined;
    });
    if (listing === undefined) return [...new Set([...this.#names, ...this.#models.keys()])].sort();
    const names = listing.folders.map((folder) => folder.slice(prefix.length).replace(/\/$/, ""));
    return names.filter((name) => isName(name) && !name.startsWith(".")).sort();
  }

  sweep(known: ReadonlySet<ModelCopy>): void {
    const newest = new Set([...this.#models.values()].map(({ copy }) => copy));
    this.#unknown.clear();
    for (const copy of this.#copies) {
      if (newest.has(copy) || known.has(copy)) continue;
      this.#copies.delete(copy);
      void copy.drop();
    }
  }

  abort(): void {
    this.#stop.abort(errorFor("SERVER_STOPPING", "the server is closing"));
  }

  async close(): Promise<void> {
    this.abort();
    await Promise.all(this.#updates.values());
    const storage = await this.#storage?.catch(() => undefined);
    storage?.close();
    const directory = await this.#directory?.catch(() => undefined);
    if (directory !== undefined) await rm(directory, { recursive: true, force: true }).catch(() => {});
  }

  /** Copies a model unless the last copy is current. Without a listing, it is listed first. */
  #update(name: string, listing?: ModelListing): Promise<void> {
    const before = this.#updates.get(name) ?? Promise.resolve();
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
    this.#updates.set(name, update);
    return update.finally(() => {
      if (this.#updates.get(name) === update) this.#updates.delete(name);
    });
  }

  async #copy(name: string, first: ModelListing | undefined): Promise<void> {
    const previous = this.#models.get(name)?.copy;
    for (let listing = first, attempt = 1; ; attempt++) {
      if (listing === undefined) {
        this.#forget(name);
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

  #forget(name: string): void {
    this.#models.delete(name);
    void this.#partial.get(name)?.drop();
    this.#partial.delete(name);
  }

  async #make(listing: ModelListing, previous: ModelCopy | undefined): Promise<ModelCopy> {
    const started = this.clock.now();
    const storage = await this.#open();
    const root = join(await this.#openDirectory(), String(++this.#copiesMade));
    const copy = new ModelCopy(join(root, listing.name), listing.objects);
    const partial = this.#partial.get(listing.name);
    const earlier = [previous ?? [], partial ?? []].flat();
    try {
      await mkdir(root);
      await copy.fill(this.#path, storage, earlier, this.#copying, this.#patience);
      this.#partial.delete(listing.name);
    } catch (error) {
      this.#partial.set(listing.name, copy);
      throw error;
    } finally {
      await partial?.drop();
    }
    this.#copies.add(copy);
    const seconds = ((this.clock.now() - started) / 1000).toFixed(1);
    this.log.info(`copied model '${listing.name}' from ${this.path} in ${seconds} s`);
    return copy;
  }

  async #openDirectory(): Promise<string> {
    this.#directory ??= makeCopyDirectory(this.#path);
    try {
      return await this.#directory;
    } catch (error) {
      this.#directory = undefined;
      throw error;
    }
  }

  async #listModel(name: string): Promise<ModelListing | undefined> {
    const { objects } = await this.#list(`${this.#path.prefix}${name}/`);
    return groupByModel(this.#path, objects).get(name);
  }

  #list(prefix: string, byFolder = false): Promise<Listing> {
    return this.#listing.run(async () => {
      try {
        return await listObjects(await this.#open(), this.#path, prefix, this.#patience, byFolder);
      } catch (error) {
        // A new storage reads the credentials again, so that a correction takes effect.
        this.#storage = undefined;
        throw error;
      }
    }, undefined);
  }

  get #patience(): Patience {
    return { clock: this.clock, signal: this.#stop.signal };
  }

  #open(): Promise<CloudStorage> {
    this.#storage ??= this.connect(this.#path);
    return this.#storage;
  }
}

/**
 * Opens the repositories at paths, each once, in the given order.
 *
 * @throws TritonError INVALID_ARG for an invalid cloud path
 */
export function openSources(paths: readonly string[], clock: Clock, log: Log): RepositorySource[] {
  const places = new Map<string, CloudPath | undefined>();
  for (const path of paths) {
    const cloud = isCloudPath(path) ? parseCloudPath(path) : undefined;
    // An empty path is not a directory; resolved, it would be the current one.
    places.set(cloud?.text ?? (path === "" ? path : resolve(path)), cloud);
  }
  return [...places].map(([path, cloud]) =>
    cloud === undefined ? new LocalSource(path) : new CloudSource(cloud, clock, log),
  );
}
