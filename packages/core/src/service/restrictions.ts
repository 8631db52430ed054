import { TritonError } from "@tritonjs/protocol";

/** Groups of operations that can be restricted, with Triton's names. */
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

/** A group of operations, the same for HTTP and gRPC. */
export type EndpointGroup = (typeof ENDPOINT_GROUPS)[number];

/** A group of operations, or the metrics page. */
export type AccessGroup = EndpointGroup | "metrics";

/** Header that a client must send to use a group of operations. */
export interface Restriction {
  /** Name of the header. Over gRPC it has the prefix `triton-grpc-protocol-`. */
  readonly header: string;
  /** Exact value of the header. */
  readonly value: string;
}

/** The restricted groups. All others are open. */
export type Restrictions = Readonly<Partial<Record<EndpointGroup, Restriction>>>;

/**
 * Names under which browsers may use a server: `"triton.example.com"`, or `".example.com"` for that name and all names
 * below it. `true` allows all names, and pages of all sites.
 */
export type AllowedHosts = true | readonly string[];

/**
 * Checks that all names are groups of operations, and returns them.
 *
 * @throws TritonError INVALID_ARG that lists the unknown names.
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
