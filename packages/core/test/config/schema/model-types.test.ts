import { describe, expect, it } from "vitest";
import { emptyConfig } from "../../../src/config/defaults.js";
import { modelTypes } from "../../../src/config/model-metadata.js";
import { readPrototxt } from "../../../src/config/prototxt.js";

describe("generated model types", () => {
  it("have a member with its tensors for each model", () => {
    const text = modelTypes([
      readPrototxt(
        'name: "a \\"b\\"" input { name: "x" data_type: TYPE_INT8 dims: [-1, 2] optional: true } output { name: "y" data_type: TYPE_FP64 dims: 1 }',
      ),
    ]);
    expect(text).toContain('declare module "@tritonjs/core"');
    expect(text).toContain('"a \\"b\\"": {');
    expect(text).toContain(
      '{ readonly name: "x"; readonly dtype: "INT8"; readonly shape: readonly [-1, 2]; readonly optional: true }',
    );
    expect(text).toContain('{ readonly name: "y"; readonly dtype: "FP64"; readonly shape: readonly [1] }');
  });

  it("have each model name once", () => {
    const model = { ...emptyConfig(), name: "twice" };
    expect(modelTypes([model, model]).match(/"twice"/g)).toHaveLength(1);
  });
});
