import { expect, it } from "vitest";
import { amended, type Difference } from "../differences/difference.js";

/** How the cases of one file are replayed. */
export interface Replay<C, G> {
  readonly cases: readonly C[];
  /** The rules by which the library differs on purpose. */
  readonly differences: readonly Difference<C, G>[];
  /**
   * Replays a case and tells how the outcome differs from what it should be.
   *
   * @param intended the case as the library is to do it, given what came
   */
  run(recorded: C, intended: (got: G) => C): Promise<readonly string[]>;
}

/** Makes a test of every case: each must agree with its recording, amended by the rules that are about it. */
export function replay<C extends { readonly id: string }, G = undefined>({
  cases,
  differences,
  run,
}: Replay<C, G>): void {
  for (const recorded of cases) {
    const rules = differences.filter((difference) => difference.applies(recorded));
    const names = rules.map(({ rule }) => rule).join(", ");
    it(names === "" ? recorded.id : `${recorded.id} differs: ${names}`, async () => {
      const found = await run(recorded, (got) => amended(recorded, rules, got));
      if (found.length > 0) expect.fail(found.join("\n"));
    });
  }
}
