import { expect, it } from "vitest";
import { VirtualClock } from "../../../src/system/clock.js";
import { SpareThreads } from "../../../src/worker/open-worker.js";

const retired: string[] = [];
const thread = (name: string) => ({ name, retire: () => void retired.push(name) });

function spareThreads() {
  retired.length = 0;
  const clock = new VirtualClock();
  return { clock, spares: new SpareThreads<ReturnType<typeof thread>>(clock) };
}

it("the thread of the model closed last is taken first, and one started ahead last", () => {
  const { spares } = spareThreads();
  for (const name of ["a", "b"]) spares.keep(thread(name));
  spares.add(thread("new"));
  expect([1, 2, 3, 4].map(() => spares.take()?.name)).toEqual(["b", "a", "new", undefined]);
});

it("the oldest spare threads end when there are too many", () => {
  const { spares } = spareThreads();
  for (const name of ["a", "b", "c", "d", "e", "f"]) spares.keep(thread(name));
  expect([spares.count, retired]).toEqual([4, ["a", "b"]]);
});

it("a spare thread ends when no model takes it within ten seconds", async () => {
  const { clock, spares } = spareThreads();
  spares.keep(thread("a"));
  await clock.advance(9_000);
  spares.keep(thread("b"));
  await clock.advance(9_000);
  expect(retired).toEqual([]);
  await clock.advance(1_000);
  expect([spares.count, retired]).toEqual([0, ["a", "b"]]);
});

it("a forgotten thread is not taken", () => {
  const { spares } = spareThreads();
  const gone = thread("gone");
  spares.keep(gone);
  spares.forget(gone);
  expect(spares.take()).toBeUndefined();
});

it("threads are started ahead when loads follow each other within ten seconds without overlapping", async () => {
  const { clock, spares } = spareThreads();
  spares.loadBegins();
  spares.loadBegins();
  expect([spares.loadEnds(), spares.loadEnds()]).toEqual([0, 0]);
  await clock.advance(5_000);
  spares.loadBegins();
  expect(spares.loadEnds()).toBe(2);
  spares.keep(thread("a"));
  spares.loadBegins();
  expect(spares.loadEnds()).toBe(1);
  await clock.advance(11_000);
  spares.loadBegins();
  expect(spares.loadEnds()).toBe(0);
});
