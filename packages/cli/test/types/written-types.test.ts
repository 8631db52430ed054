import { readFileSync } from "node:fs";
import { readPrototxt } from "@tritonjs/core/config";
import { expect, it } from "vitest";
import { modelOfConfig } from "../../src/types/typed-model.js";
import { typesText } from "../../src/types/write-types.js";

/** Configurations whose types are in `test/types/typed-models.d.ts`. */
const configs = [
  `name: "typed_resnet"
   max_batch_size: 8
   input [
     { name: "image" data_type: TYPE_FP32 dims: [ 3, -1, -1 ] },
     { name: "size-hint" data_type: TYPE_INT64 dims: [ 2 ] optional: true }
   ]
   output [ { name: "label" data_type: TYPE_STRING dims: [ 1 ] } ]`,
  `name: "typed_source" output { name: "y" data_type: TYPE_BF16 dims: 4 }`,
].map((text) => readPrototxt(text));

/** The text that is left after the formatter has run. */
const unformatted = (text: string) => text.replace(/[\s"',;]/g, "");

it("the compiled types of models are those that tritonjs types writes", () => {
  const written = typesText(
    { models: configs.map((config) => modelOfConfig(config.name, config)), unread: [] },
    true,
  );
  const compiled = readFileSync(new URL("../../../../test/types/typed-models.d.ts", import.meta.url), "utf8");
  expect(unformatted(written)).toBe(unformatted(compiled));
});
