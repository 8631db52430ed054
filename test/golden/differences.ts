interface Difference {
  /** Ids of recorded cases, or a pattern of ids. */
  readonly cases: readonly (string | RegExp)[];
  readonly reason: string;
}

/**
 * Where the library differs from the recorded server on purpose. A case on this list must differ: one that agrees
 * fails its test, so that the list stays true.
 */
const differences: readonly Difference[] = [];

/** Why a case differs on purpose; `undefined` when it must agree. */
export function differenceOf(id: string): string | undefined {
  return differences.find(({ cases }) =>
    cases.some((entry) => (typeof entry === "string" ? entry === id : entry.test(id))),
  )?.reason;
}
