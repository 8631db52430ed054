/** A recorded case, or a part of one, that can be changed. */
export type Draft<T> = unknown extends T
  ? T
  : T extends string | number | bigint | boolean | null | undefined
    ? T
    : { -readonly [K in keyof T]: Draft<T[K]> };

/**
 * A rule by which the library differs from the recorded server on purpose. It selects its recordings by their
 * content, and states what they would hold if the recorded server followed the rule. All else must agree.
 * @typeParam C the recorded case
 * @typeParam G the outcome of playing it; `undefined` where the rule is applied before that
 */
export interface Difference<C, G = undefined> {
  /** Name of the rule. Its row in `docs/compatibility.md` explains it. */
  readonly rule: string;
  /** The recorded Python models themselves agree with the recording. */
  readonly onlyCallbacks?: true;
  /** The rule waits for a change of the library: the difference is not intended. Such a rule has no row. */
  readonly untilMended?: true;
  applies(recorded: C): boolean;
  /**
   * Changes a copy of the recording into the intended behaviour of the library. Where the recording does not say
   * enough, the outcome may be copied once it has been checked against the rule.
   * @throws Error if the outcome does not follow the rule
   */
  amend(draft: Draft<C>, got: G): void;
}

/** The recording after the given rules. */
export function amended<C, G>(recorded: C, rules: readonly Difference<C, G>[], got: G): C {
  const draft = structuredClone(recorded);
  for (const { amend } of rules) amend(draft as Draft<C>, got);
  return draft;
}
