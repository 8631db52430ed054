import type { ModelConfig } from "@tritonjs/protocol";
import type { PendingRequest } from "../../request/pending-request.js";

/** A model of an ensemble, as its steps see it. */
export interface EnsembleMember {
  readonly version: number;
  readonly config: ModelConfig;
  /** Accepts a request; throws if the request is refused. */
  infer(request: PendingRequest): void;
}

/**
 * Looks a member up; an empty version means the highest that is ready. Throws `TritonError` if the member is not ready.
 */
export type FindMember = (name: string, version: string, namespace: string) => EnsembleMember;
