/** Triton's states of a model version. */
export type ModelState = "UNKNOWN" | "READY" | "UNAVAILABLE" | "LOADING" | "UNLOADING";

/** A version of a model as look-ups and the repository index see it. */
export interface RegisteredVersion {
  readonly name: string;
  /** Tells models of one name apart: the path of the repository, where namespaces are on; otherwise empty. */
  readonly namespace: string;
  readonly version: number;
  readonly state: ModelState;
  /** Why the version is not READY, or what failed since it is. */
  readonly reason: string;
  readonly isEnsemble: boolean;
}

/** A version that nothing serves: it is on its way, or could not be made at all. */
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
