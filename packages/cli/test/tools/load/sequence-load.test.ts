import { expect, it } from "vitest";
import { sequenceRules } from "../../../src/load/sequence-load.js";

it("options of sequences that are undefined leave the defaults as they are", () => {
  const options = {
    idStart: undefined,
    idRange: undefined,
    length: undefined,
    lengthVariationPercent: undefined,
  };
  expect(sequenceRules(options, false, { index: 1, count: 2 })).toEqual({
    hasGivenSteps: false,
    length: undefined,
    defaultLength: 20,
    lengthVariationPercent: 20,
    idStart: 0x8000_0000,
    idRange: 0x8000_0000,
  });
});
