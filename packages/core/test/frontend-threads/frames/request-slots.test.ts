import { expect, it } from "vitest";
import { RequestSlots } from "../../../src/frontend-threads/request-frames.js";

it("a slot is used again under another number", () => {
  const slots = new RequestSlots<string>();
  const first = slots.add("a");
  slots.delete(first);
  const second = slots.add("b");
  expect(second).not.toBe(first);
  expect([slots.get(first), slots.get(second)]).toEqual([undefined, "b"]);
  slots.delete(first);
  expect(slots.values()).toEqual(["b"]);
});

it("the other end keeps a request under the number that it was given", () => {
  const [here, there] = [new RequestSlots<number>(), new RequestSlots<number>()];
  const numbers = Array.from({ length: 100 }, (_, i) => here.add(i));
  for (const [i, number] of numbers.entries()) there.set(number, i);
  expect(numbers.map((number) => there.get(number))).toEqual(numbers.map((_, i) => i));
  for (const number of numbers) there.delete(number);
  expect(there.values()).toEqual([]);
});

it("the other end does not count the slots that become free, which only the first end uses again", () => {
  const slots = new RequestSlots<string>();
  const number = 1 << 20;
  slots.set(number, "a");
  slots.delete(number);
  slots.delete(number);
  const [first, second] = [slots.add("b"), slots.add("c")];
  expect([first & 1, second & 3]).toEqual([1, 2]);
});
