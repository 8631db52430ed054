import { describe, expect, test } from "vitest";
import type { Attempt, Carrier, OutgoingCall } from "../../src/caller.js";
import { Caller } from "../../src/caller.js";
import { isTimeout, TritonError } from "../../src/index.js";
import type { CommonClientOptions } from "../../src/options.js";

const refused: Attempt<string> = { error: new TritonError("UNAVAILABLE", "refused"), failure: "not-sent" };
const lost: Attempt<string> = { error: new TritonError("UNAVAILABLE", "lost"), failure: "lost" };
const busy: Attempt<string> = { error: new TritonError("UNAVAILABLE", "busy"), failure: "unavailable" };
const answer: Attempt<string> = { answer: "answer" };

/** A caller with a carrier whose attempts end like this, the last one again and again. */
function callerOf(outcomes: readonly Attempt<string>[], options: CommonClientOptions = {}) {
  let attempts = 0;
  const carrier: Carrier<OutgoingCall, string> = {
    attempt: async () => outcomes[Math.min(attempts++, outcomes.length - 1)]!,
    close: () => {},
  };
  const caller = new Caller(carrier, { retryDelayMs: 0, ...options });
  return { caller, attempts: () => attempts };
}

/** A carrier that answers nothing until the call ends. */
const silent: Carrier<OutgoingCall, string> = {
  attempt: (_request, { signal }) =>
    new Promise((resolve) => {
      const error = new TritonError("UNKNOWN", "the carrier's own error");
      signal.addEventListener("abort", () => resolve({ error }), { once: true });
    }),
  close: () => {},
};

describe("a call", () => {
  test("that was never sent is made again", async () => {
    const { caller, attempts } = callerOf([refused, refused, answer]);
    expect(await caller.call({ idempotent: false }, {})).toBe("answer");
    expect(attempts()).toBe(3);
  });

  test("that was lost is made again only when it is idempotent", async () => {
    const reading = callerOf([lost, answer]);
    expect(await reading.caller.call({ idempotent: true }, {})).toBe("answer");
    const changing = callerOf([lost, answer]);
    await expect(changing.caller.call({ idempotent: false }, {})).rejects.toThrow("lost");
    expect(changing.attempts()).toBe(1);
  });

  test("rejects with the last error when all attempts are used", async () => {
    const { caller, attempts } = callerOf([refused, lost], { retries: 1 });
    await expect(caller.call({ idempotent: true }, {})).rejects.toThrow("lost");
    expect(attempts()).toBe(2);
  });

  test("that the server refuses is made again only when the client wants it", async () => {
    await expect(callerOf([busy, answer]).caller.call({ idempotent: true }, {})).rejects.toThrow("busy");
    const { caller } = callerOf([busy, answer], { retryUnavailable: true });
    expect(await caller.call({ idempotent: false }, {})).toBe("answer");
  });

  test("with too little time for the next attempt times out at once", async () => {
    const { caller, attempts } = callerOf([refused], { retryDelayMs: 5000, timeoutMs: 4000 });
    const error = await caller.call({ idempotent: true }, {}).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "UNAVAILABLE", message: "the server did not answer within 4000 ms" });
    expect(isTimeout(error)).toBe(true);
    expect(attempts()).toBe(1);
  });

  test("ends with the error of its time limit, whatever the carrier makes of the abort", async () => {
    const caller = new Caller(silent, {});
    const error = await caller.call({ idempotent: true }, { timeoutMs: 5 }).catch((thrown) => thrown);
    expect(isTimeout(error)).toBe(true);
  });

  test("ends with CANCELLED when its signal aborts or the client is closed", async () => {
    const caller = new Caller(silent, {});
    const abort = new AbortController();
    const aborted = caller.call({ idempotent: true }, { signal: abort.signal });
    abort.abort(new Error("why"));
    await expect(aborted).rejects.toMatchObject({ code: "CANCELLED", cause: { message: "why" } });
    const open = caller.call({ idempotent: true }, {});
    caller.close();
    await expect(open).rejects.toMatchObject({
      reason: "CLIENT_CLOSED_MEANWHILE",
      message: "the client was closed",
    });
    await expect(caller.call({ idempotent: true }, {})).rejects.toMatchObject({ reason: "CLIENT_CLOSED" });
  });
});
