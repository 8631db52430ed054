import type { TritonError } from "@tritonjs/protocol";
import type { ModelCopy } from "../cloud/model-copy.js";

/** Where the files of a model are. */
export interface ModelPlace {
  /** Directory that links may not lead out of. */
  readonly root: string;
  readonly directory: string;
  /** Set when the directory is a copy of what is elsewhere. */
  readonly copy?: ModelCopy | undefined;
}

/** One model repository: a directory, or something that is copied into directories. */
export interface RepositorySource {
  /** The repository as models are told apart by it. */
  readonly path: string;
  /** True when its models have to be brought to this machine before they can be looked at. */
  readonly isRemote: boolean;

  /**
   * Makes sure that the repository is there.
   *
   * @throws TritonError INTERNAL for one that is not there or cannot be reached, INVALID_ARG for one that is no directory
   */
  check(): Promise<void>;

  /** Brings models to this machine, of all names unless some are given. What fails is told by the methods below. */
  refresh(names?: readonly string[]): Promise<void>;

  /** Names of the models, as of the last refresh. @throws TritonError when they could not be read */
  names(): Promise<readonly string[]>;

  /** True for the name of a model that the repository has, as of the last refresh. */
  has(name: string): Promise<boolean>;

  /** Why nothing is known about a model, for one that may be there or not. */
  problemOf(name: string): TritonError | undefined;

  /** The files of a model that the repository has, as of the last refresh. @throws TritonError why there are none */
  open(name: string): Promise<ModelPlace>;

  /** Names of the models for the index, as they are now if that can be told. */
  listed(): Promise<readonly string[]>;

  /** Removes copies that no version is made of, that are not of today and not among those given. */
  sweep(known: ReadonlySet<ModelCopy>): void;

  /** Gives up what is being brought here, now and later. */
  abort(): void;

  /** Removes all copies. */
  close(): Promise<void>;
}
