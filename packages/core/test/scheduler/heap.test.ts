import fc from "fast-check";
import { expect, it } from "vitest";
import { Heap } from "../../src/scheduler/priority-queue.js";

it("a heap returns the smallest item first, whatever the order of pushes and pops", () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.nat(50)), { maxLength: 60 }), (steps) => {
      const heap = new Heap<number>((a, b) => a - b);
      const model: number[] = [];
      for (const value of steps) {
        if (value === null) {
          model.sort((a, b) => a - b);
          expect(heap.take()).toBe(model.shift());
        } else {
          heap.add(value);
          model.push(value);
        }
      }
    }),
  );
});
