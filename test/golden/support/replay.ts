import { expect, it } from "vitest";
import { differenceOf } from "../differences.js";
import { neededFor, type Subject } from "./coverage.js";

/** How the cases of one file are replayed. */
export interface Replay<C> {
  readonly cases: readonly C[];
  /** What the case asks of the server. */
  subject(recorded: C): Subject;
  /** Replays a case and tells how the outcome differs from the recorded one. */
  run(recorded: C): Promise<readonly string[]>;
  /** Why a case differs on purpose. @default as `differences.ts` says */
  readonly differenceOf?: (id: string) => string | undefined;
}

/**
 * Makes a test of every case: one that needs what is not built yet is a to-do, one that is listed to differ must
 * differ, and all others must agree with the recording.
 */
export function replay<C extends { readonly id: string }>(given: Replay<C>): void {
  const { cases, subject, run } = given;
  const reasonOf = given.differenceOf ?? differenceOf;
  for (const recorded of cases) {
    const needs = neededFor(subject(recorded));
    const reason = reasonOf(recorded.id);
    if (needs !== undefined) it.todo(`${recorded.id} (needs: ${needs})`);
    else if (reason === undefined) {
      it(recorded.id, async () => {
        const found = await run(recorded);
        if (found.length > 0) expect.fail(found.join("\n"));
      });
    } else {
      it(`${recorded.id} differs: ${reason}`, async () => {
        expect(await run(recorded), "agrees with the recording: take it off the list").not.toEqual([]);
      });
    }
  }
}
