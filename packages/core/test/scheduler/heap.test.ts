import fc from "fast-check";
import { expect, it } from "vitest";
import { Heap } from "../../src/scheduler/heap.js";

it("a heap gives what comes first, in any order of coming and going", () => {
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
