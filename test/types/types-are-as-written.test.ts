import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { writtenModelTypes } from "./written-model-types.js";

/** What is left when the formatter has been over it. */
const unformatted = (text: string) => text.replace(/[\s"',;]/g, "");

it("the compiled types of models are those that are written", () => {
  const compiled = readFileSync(new URL("typed-models.d.ts", import.meta.url), "utf8");
  expect(unformatted(writtenModelTypes())).toBe(unformatted(compiled));
});
