import { expect, it } from "vitest";
import { Locks } from "../../src/repository/repository-changes.js";

const planFor = (locks: Locks, ...locked: string[]) => locks.plan(async () => ({ value: locked, locked }));

it("changes of different models run at the same time", async () => {
  const locks = new Locks();
  const [a, b] = await Promise.all([planFor(locks, "a"), planFor(locks, "b")]);
  expect([a.value, b.value]).toEqual([["a"], ["b"]]);
});

it("a change waits for another one of the same model and is then planned again", async () => {
  const locks = new Locks();
  const first = await planFor(locks, "a", "b");
  let plans = 0;
  const waiting = locks.plan(async () => ({ value: ++plans, locked: ["b"] }));
  await planFor(locks, "c");
  expect(plans).toBe(1);
  first.release();
  expect((await waiting).value).toBe(2);
});

it("a plan that fails locks nothing", async () => {
  const locks = new Locks();
  const failing = locks.plan(async () => Promise.reject(new Error("no")));
  await expect(failing).rejects.toThrow("no");
  expect((await planFor(locks, "a")).value).toEqual(["a"]);
});
