/** Triton's states of a model version. */
export type ModelState = "UNKNOWN" | "READY" | "UNAVAILABLE" | "LOADING" | "UNLOADING";

/** A version of a model as look-ups and the repository index see it. */
export interface RegisteredVersion {
  readonly name: string;
  /** Distinguishes models of the same name: the path of the repository if namespaces are on, otherwise empty. */
  readonly namespace: string;
  readonly version: number;
  readonly state: ModelState;
  /** Why the version is not READY, or the latest failure since it became READY. */
  readonly reason: string;
  readonly isEnsemble: boolean;
}

/** A version that cannot serve: it is loading, could not be created, or is unloaded. */
export class AbsentVersion implements RegisteredVersion {
  readonly isEnsemble = false;

  constructor(
    readonly name: string,
    readonly namespace: string,
    readonly version: number,
    readonly state: ModelState,
    readonly reason: string,
  ) {}
}
