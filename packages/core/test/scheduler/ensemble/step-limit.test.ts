import { describe, expect, it } from "vitest";
import { StepLimit } from "../../../src/scheduler/ensemble-scheduler.js";

function starter(started: string[], name: string, wanted = true) {
  return {
    start: () => {
      if (wanted) started.push(name);
      return wanted;
    },
  };
}

describe("the limit of an ensemble step", () => {
  it("starts requests up to the limit, and the others in order", () => {
    const started: string[] = [];
    const limit = new StepLimit(2);
    expect(["a", "b", "c", "d"].map((name) => limit.acquire(starter(started, name)))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    limit.release();
    expect(started).toEqual(["a", "b", "c"]);
    limit.release();
    expect(started).toEqual(["a", "b", "c", "d"]);
  });

  it("skips a waiting request that was cancelled", () => {
    const started: string[] = [];
    const limit = new StepLimit(1);
    limit.acquire(starter(started, "a"));
    limit.acquire(starter(started, "b", false));
    limit.acquire(starter(started, "c"));
    limit.release();
    expect(started).toEqual(["a", "c"]);
  });

  it("forgets a request that leaves the line", () => {
    const started: string[] = [];
    const limit = new StepLimit(1);
    const [a, b, c] = ["a", "b", "c"].map((name) => starter(started, name));
    for (const one of [a, b, c]) limit.acquire(one!);
    limit.leave(b!);
    limit.release();
    expect(started).toEqual(["a", "c"]);
    limit.release();
    expect(limit.acquire(b!)).toBe(true);
  });

  it("is off when it is 0", () => {
    const started: string[] = [];
    const limit = new StepLimit(0);
    for (const name of ["a", "b", "c"]) limit.acquire(starter(started, name));
    expect(started).toEqual(["a", "b", "c"]);
  });
});
