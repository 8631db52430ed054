import { expect, it } from "vitest";
import { type Parts, Turns } from "../../src/turns.js";

/** An event loop whose turns are made by hand, and work whose parts take two milliseconds each. */
function handmadeLoop() {
  let time = 0;
  const due: (() => void)[] = [];
  const turns = new Turns({ now: () => time, defer: (run) => due.push(run) });
  const done: string[] = [];
  function* work(name: string, parts: number): Parts<string> {
    for (let part = 0; part < parts; part++) {
      time += 2;
      done.push(name);
      yield;
    }
    return name;
  }
  return {
    turns,
    work,
    done,
    nextTurn: () => {
      for (const run of due.splice(0)) run();
    },
  };
}

it("does short work at once, and five milliseconds of long work in each turn", async () => {
  const { turns, work, done, nextTurn } = handmadeLoop();
  expect(turns.run(work("short", 1))).toBe("short");
  const long = turns.run(work("long", 5));
  expect(done.filter((name) => name === "long")).toHaveLength(2);
  nextTurn();
  expect(done.filter((name) => name === "long")).toHaveLength(5);
  nextTurn();
  expect(await long).toBe("long");
});

it("alternates between requests, so that one of them does not wait for 64 others", async () => {
  const { turns, work, nextTurn } = handmadeLoop();
  const hostile = Array.from({ length: 64 }, (_, i) => turns.run(work(`hostile ${i}`, 1000)));
  const honest = Promise.resolve(turns.run(work("honest", 2)));
  let settled = false;
  void honest.then(() => {
    settled = true;
  });
  for (let turn = 0; turn < 100 && !settled; turn++) {
    nextTurn();
    await Promise.resolve();
  }
  expect(settled).toBe(true);
  expect(hostile).toHaveLength(64);
});

it("ends work whose request has ended, and passes errors on", async () => {
  const { turns, work, nextTurn } = handmadeLoop();
  const request = new AbortController();
  const cancelled = turns.run(work("cancelled", 100), request.signal);
  function* failing(): Parts<string> {
    yield* work("failing", 3);
    throw new Error("no");
  }
  const failed = turns.run(failing());
  const outcomes = Promise.allSettled([cancelled, failed]);
  request.abort();
  for (let turn = 0; turn < 5; turn++) nextTurn();
  expect(await outcomes).toMatchObject([
    { status: "rejected", reason: { code: "CANCELLED" } },
    { status: "rejected", reason: { message: "no" } },
  ]);
});
