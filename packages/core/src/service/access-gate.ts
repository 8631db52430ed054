import { createHash, timingSafeEqual } from "node:crypto";
import { TritonError } from "../errors/triton-error.js";

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

/** Decides who may use which group of operations, for every transport. */
export class AccessGate {
  readonly #guards = new Map<EndpointGroup, { readonly header: string; readonly digest: Buffer }>();

  /**
   * @throws TritonError INVALID_ARG for an unknown group, which would stay open, and for a restriction without a header
   * or a value.
   */
  constructor(restrictions: Restrictions) {
    for (const group of checkGroups(Object.keys(restrictions))) {
      const restriction = restrictions[group];
      if (restriction === undefined) continue;
      const { header, value } = restriction;
      if (!header || !value) {
        const text = `restriction of '${group}': expected a header and a value, got header '${header}'`;
        throw new TritonError("INVALID_ARG", value ? text : `${text} without a value`, {
          reason: "INVALID_OPTION",
        });
      }
      this.#guards.set(group, { header, digest: digestOf(value) });
    }
  }

  /** True when some callers may not use the group. */
  guards(group: EndpointGroup): boolean {
    return this.#guards.has(group);
  }

  /**
   * The header without which a caller may not use the group, or undefined for one who may. The time it takes says
   * nothing about where two values differ, nor about how long the right one is.
   *
   * @param sent the value of a header of the caller's, by its name as the restriction has it
   */
  missingHeader(group: EndpointGroup, sent: (header: string) => string | undefined): string | undefined {
    const guard = this.#guards.get(group);
    if (guard === undefined) return undefined;
    const value = sent(guard.header);
    if (value !== undefined && timingSafeEqual(digestOf(value), guard.digest)) return undefined;
    return guard.header;
  }
}

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

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
