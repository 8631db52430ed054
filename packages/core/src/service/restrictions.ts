import { TritonError } from "@tritonjs/protocol";

/** The groups of operations that can be restricted, in Triton's words. */
export const ENDPOINT_GROUPS = [
  "health",
  "metadata",
  "inference",
  "shared-memory",
  "model-config",
  "model-repository",
  "statistics",
  "trace",
  "logging",
] as const;

/** A group of operations, of HTTP and gRPC alike. */
export type EndpointGroup = (typeof ENDPOINT_GROUPS)[number];

/** What a client has to send to use a group of operations. */
export interface Restriction {
  /** Name of the header; over gRPC it is sent with the prefix `triton-grpc-protocol-`. */
  readonly header: string;
  /** Its value, exactly. */
  readonly value: string;
}

/** The groups that are restricted; all others are open. */
export type Restrictions = Readonly<Partial<Record<EndpointGroup, Restriction>>>;

/**
 * The names, all of which are groups.
 *
 * @throws TritonError INVALID_ARG that lists those that are not.
 */
export function checkGroups(names: readonly string[]): EndpointGroup[] {
  const known = (name: string): name is EndpointGroup => ENDPOINT_GROUPS.some((group) => group === name);
  const unknown = names.filter((name) => !known(name)).sort();
  if (unknown.length > 0) {
    const valid = [...ENDPOINT_GROUPS].sort().join(", ");
    const text = `Invalid endpoint names: ${unknown.join(", ")}. Valid endpoints are: ${valid}`;
    throw new TritonError("INVALID_ARG", text, { reason: "INVALID_OPTION" });
  }
  return names.filter(known);
}
