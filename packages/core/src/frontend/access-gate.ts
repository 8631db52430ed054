import { createHash, timingSafeEqual } from "node:crypto";
import { TritonError } from "@tritonjs/protocol";
import { type AccessGroup, checkGroups, type Restrictions } from "../service/restrictions.js";

/** Decides which callers may use which group of operations, for every transport. */
export class AccessGate {
  readonly #guards = new Map<AccessGroup, { readonly header: string; readonly digest: Buffer }>();

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

  /** True if the group is restricted. */
  guards(group: AccessGroup): boolean {
    return this.#guards.has(group);
  }

  /**
   * Names the header that the caller lacks, or undefined if the caller may use the group. The time that the check takes
   * reveals neither where two values differ nor the length of the right one.
   *
   * @param sent returns the value of a header of the caller; header names are those of the restriction
   */
  missingHeader(group: AccessGroup, sent: (header: string) => string | undefined): string | undefined {
    const guard = this.#guards.get(group);
    if (guard === undefined) return undefined;
    const value = sent(guard.header);
    if (value !== undefined && timingSafeEqual(digestOf(value), guard.digest)) return undefined;
    return guard.header;
  }
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
