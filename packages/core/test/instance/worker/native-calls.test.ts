import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { ThreadEnding } from "../../../src/worker/native-calls.js";

/** Place of the shared state that says whether the thread is in a native call. */
const CALLS = 0;

test("a thread that is outside of native calls ends at once", () => {
  const ending = new ThreadEnding();
  let ended = 0;
  ending.begin(() => ended++);
  expect(ended).toBe(1);
  ending.over();
});

test("a thread in a native call ends after the call", async () => {
  const ending = new ThreadEnding();
  Atomics.store(ending.state, CALLS, 1);
  let isInCall = true;
  const ended = new Promise<boolean>((resolve) => ending.begin(() => resolve(isInCall)));
  await new Promise(setImmediate);
  isInCall = false;
  Atomics.store(ending.state, CALLS, 0);
  expect(await ended).toBe(false);
  ending.over();
});

test("an exiting process waits for a thread that is in a native call", async () => {
  const ending = new ThreadEnding();
  Atomics.store(ending.state, CALLS, 1);
  const thread = new Worker(
    `const { workerData } = require("node:worker_threads");
    while (Atomics.load(workerData, 1) === 0);
    Atomics.store(workerData, 0, 0);
    Atomics.notify(workerData, 0);`,
    { eval: true, workerData: ending.state },
  );
  ending.wait(60_000);
  expect(Atomics.load(ending.state, CALLS)).toBe(0);
  await thread.terminate();
  ending.over();
});

test("a thread that ended in a native call is not waited for", async () => {
  const ending = new ThreadEnding();
  Atomics.store(ending.state, CALLS, 1);
  const ended = new Promise<void>((resolve) => ending.begin(resolve));
  ending.over();
  await ended;
});
