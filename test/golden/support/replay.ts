import { expect, it } from "vitest";
import { amended, type Difference } from "../differences/difference.js";

/** Options for replaying the cases of one file. */
export interface Replay<C, G> {
  readonly cases: readonly C[];
  /** The rules by which the library differs on purpose. */
  readonly differences: readonly Difference<C, G>[];
  /**
   * How often a case is played at most until it agrees; for cases on the real clock. On a busy machine, events that
   * the recording spaced out by milliseconds may come in another order once. A fault of the library shows each time.
   * @default 1
   */
  readonly plays?: number;
  /**
   * Plays one case of so many, spread over all subjects, and all cases that build on earlier ones. For a way to serve that
   * shares most code with another one, where all cases are played.
   * @default 1
   */
  readonly every?: number;
  /**
   * Replays a case and lists how the outcome differs from the intended one.
   * @param intended the case as the library is expected to handle it, given the outcome
   */
  run(recorded: C, intended: (got: G) => C): Promise<readonly string[]>;
}

/** Ids of cases about sequences, statistics and registered memory, which need the cases before them. */
const BUILDS_ON_OTHERS = /-(seq|stats|shm|cuda)/;

/** Makes a test of every case: each must agree with its recording, amended by the rules that apply to it. */
export function replay<C extends { readonly id: string }, G = undefined>({
  cases,
  differences,
  plays = 1,
  every = 1,
  run,
}: Replay<C, G>): void {
  for (const recorded of cases.filter(({ id }, index) => index % every === 0 || BUILDS_ON_OTHERS.test(id))) {
    const rules = differences.filter((difference) => difference.applies(recorded));
    const names = rules.map(({ rule }) => rule).join(", ");
    it(names === "" ? recorded.id : `${recorded.id} differs: ${names}`, async () => {
      let found: readonly string[] = [];
      for (let play = 1; play <= plays; play++) {
        found = await run(recorded, (got) => amended(recorded, rules, got));
        if (found.length === 0) break;
      }
      if (found.length > 0) expect.fail(found.join("\n"));
    });
  }
}
