import fc from "fast-check";
import { expect, it } from "vitest";
import { FreeSlots } from "../../../src/scheduler/sequence-batch/free-slots.js";
import type { Slot } from "../../../src/scheduler/sequence-batch/slot.js";

const slot = (rank: number) => ({ rank }) as Slot;

it("free slots are given away lowest first, in any order of coming and going", () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.nat(50)), { maxLength: 60 }), (steps) => {
      const free = new FreeSlots();
      const model: number[] = [];
      for (const rank of steps) {
        if (rank === null) {
          model.sort((a, b) => a - b);
          expect(free.take()?.rank).toBe(model.shift());
        } else {
          free.add(slot(rank));
          model.push(rank);
        }
      }
    }),
  );
});
