import type { ModelConfig } from "@tritonjs/protocol";
import type { PendingRequest } from "../../request/pending-request.js";

/** A model that an ensemble is made of, as its steps see it. */
export interface EnsembleMember {
  readonly version: number;
  readonly config: ModelConfig;
  /** Takes a request; throws when it is refused. */
  infer(request: PendingRequest): void;
}

/**
 * Looks a member up; an empty version stands for the highest that is ready. Throws `TritonError` for one that is
 * not ready.
 */
export type FindMember = (name: string, version: string, namespace: string) => EnsembleMember;
