import { availableParallelism } from "node:os";
import { expect, it } from "vitest";
import { defaultThreads } from "../../../src/load/load-generator.js";

it.each([
  [1, 1],
  [2, 1],
  [3, 1],
  [4, 2],
  [7, 3],
  [16, 8],
  [96, 8],
])("a machine with %i cores has %i threads that send: half of the cores, from 1 to 8", (cores, threads) => {
  expect(defaultThreads(cores)).toBe(threads);
});

it("the threads depend on the cores that this process may use", () => {
  expect(defaultThreads()).toBe(defaultThreads(availableParallelism()));
});
