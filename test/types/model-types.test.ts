import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { writtenModelTypes } from "./written-model-types.js";

/** The text that is left after the formatter has run. */
const unformatted = (text: string) => text.replace(/[\s"',;]/g, "");

it("the compiled types of models are those that tritonjs types writes", () => {
  const compiled = readFileSync(new URL("typed-models.d.ts", import.meta.url), "utf8");
  expect(unformatted(writtenModelTypes())).toBe(unformatted(compiled));
});
