import { stat } from "node:fs/promises";
import { join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { exists } from "../system/files.js";
import type { ModelCopy } from "./model-copy.js";
import { modelNames } from "./model-directory.js";

/** The location of a model's files. */
export interface ModelPlace {
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
  /** The path that identifies the repository. */
  readonly path: string;
  /** Whether its models have to be copied to this machine before a poll. */
  readonly isRemote: boolean;

  /**
   * Checks that the repository exists.
   *
   * @throws TritonError INTERNAL when it does not exist or cannot be reached, INVALID_ARG when it is not a directory
   */
  check(): Promise<void>;

  /** Copies models to this machine: the named ones, or all. The methods below report failures. */
  refresh(names?: readonly string[]): Promise<void>;

  /** Names of the models, as of the last refresh. @throws TritonError when they could not be read */
  names(): Promise<readonly string[]>;

  /** Whether the repository has a model of the name, as of the last refresh. */
  has(name: string): Promise<boolean>;

  /** Why the state of a model is unknown, including whether it exists. */
  problemOf(name: string): TritonError | undefined;

  /**
   * The files of a model of the repository, as of the last refresh. @throws TritonError with the reason if there are
   * none
   */
  open(name: string): Promise<ModelPlace>;

  /** Current names of the models for the index, if they can be read. */
  listed(): Promise<readonly string[]>;

  /** Removes copies that no version is made of, except the current ones and the given ones. */
  sweep(known: ReadonlySet<ModelCopy>): void;

  /** Cancels copies in flight, and rejects later ones. */
  abort(): void;

  /** Removes all copies. */
  close(): Promise<void>;
}

/** A directory of models, which are served in place. */
export class LocalSource implements RepositorySource {
  readonly isRemote = false;

  constructor(readonly path: string) {}

  async check(): Promise<void> {
    const found = await stat(this.path).catch(() => undefined);
    if (found === undefined)
      throw new TritonError("INTERNAL", `failed to stat file ${this.path}`, { reason: "FILE_NOT_READABLE" });
    if (!found.isDirectory()) {
      throw new TritonError("INVALID_ARG", `repository path ${this.path} is not a valid directory`, {
        reason: "INVALID_REPOSITORY",
      });
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

  async open(name: string): Promise<ModelPlace> {
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
  /** Directories by the names of their models. */
  readonly #directories: ReadonlyMap<string, string>;

  /** @param directories directories by the names of their models; a directory that is not listed names its model */
  constructor(path: string, directories: ReadonlyMap<string, string>) {
    super(path);
    this.#directories = directories;
  }

  override async names(): Promise<readonly string[]> {
    const renamed = new Set(this.#directories.values());
    const others = (await super.names()).filter((directory) => !renamed.has(directory));
    return [...this.#directories.keys(), ...others].sort();
  }

  override async has(name: string): Promise<boolean> {
    const directory = this.#directories.get(name);
    if (directory !== undefined) return super.has(directory);
    return ![...this.#directories.values()].includes(name) && (await super.has(name));
  }

  override async open(name: string): Promise<ModelPlace> {
    const directory = this.#directories.get(name);
    if (directory === undefined) return super.open(name);
    return { root: this.path, directory: join(this.path, directory), isRenamed: true };
  }

  override listed(): Promise<readonly string[]> {
    return this.names().catch(() => []);
  }
}
