/** A recorded case, or a part of one, that can be changed. */
export type Draft<T> = unknown extends T
  ? T
  : T extends string | number | bigint | boolean | null | undefined
    ? T
    : { -readonly [K in keyof T]: Draft<T[K]> };

/**
 * A rule by which the library differs from the recorded server on purpose. It tells the recordings that it is about by
 * their content, and what they would hold if the recorded server followed the rule. All else must agree.
 *
 * @typeParam C the recorded case
 * @typeParam G what came of playing it; `undefined` where the rule is applied before that
 */
export interface Difference<C, G = undefined> {
  /** Name of the rule. Its row in `docs/compatibility.md` says what it is and why. */
  readonly rule: string;
  /** The recorded Python models, run as they are, agree with the recording. */
  readonly onlyCallbacks?: true;
  /** Waits for a change of the library: the difference is not intended. Such a rule has no row. */
  readonly untilMended?: true;
  applies(recorded: C): boolean;
  /**
   * Changes a copy of the recording into what the library is to do. Where the recording does not say enough, what came
   * may be taken over once it has been found to follow the rule.
   *
   * @throws Error if what came does not follow the rule
   */
  amend(draft: Draft<C>, got: G): void;
}

/** The recording as the given rules have it. */
export function amended<C, G>(recorded: C, rules: readonly Difference<C, G>[], got: G): C {
  const draft = structuredClone(recorded);
  for (const { amend } of rules) amend(draft as Draft<C>, got);
  return draft;
}
