import type { TritonError } from "@tritonjs/protocol";
import type { ModelCopy } from "../cloud/model-copy.js";

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
