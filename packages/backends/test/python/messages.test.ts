import { expect, it } from "vitest";
import { parametersJson } from "../../src/python/messages.js";

it("python model parameters keep every value, including numbers that JSON cannot write", () => {
  const parameters = {
    nan: Number.NaN,
    up: Number.POSITIVE_INFINITY,
    down: Number.NEGATIVE_INFINITY,
    wide: 2n ** 63n - 1n,
    large: 1e300,
    text: "NaN",
    yes: true,
  };
  expect(parametersJson(parameters)).toBe(
    '{"nan":NaN,"up":Infinity,"down":-Infinity,"wide":9223372036854775807,"large":1e+300,"text":"NaN","yes":true}',
  );
});
