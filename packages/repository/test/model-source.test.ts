import { type Extension, sample, Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it } from "vitest";

const refusal = {
  code: "UNAVAILABLE",
  reason: "MODEL_CONTROL_DISABLED",
  message: "explicit model load / unload is not allowed if polling is enabled",
};

describe("the models of a server that are not bound", () => {
  it("come from one extension at most", () => {
    const other: Extension = { ...repository({}), name: "other" };
    expect(() => new Triton({ extensions: [repository({}), other] })).toThrow(
      "extensions: expected at most one with models of its own, got 'repository' and 'other'",
    );
  });

  it("cannot be loaded where there are none", async () => {
    await using triton = new Triton();
    await expect(triton.loadModel("m")).rejects.toMatchObject(refusal);
    await expect(triton.unloadModel("m")).rejects.toMatchObject(refusal);
    await expect(triton.registerModelRepository("models")).rejects.toMatchObject(refusal);
    expect(() => triton.unregisterModelRepository("models")).toThrow(expect.objectContaining(refusal));
  });

  it("are missing in the index of a server without them, which lists bound ones by name", async () => {
    await using triton = new Triton();
    const bind = (modelName: string) =>
      triton.bind({
        modelName,
        inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
        outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
        inferFunc: sample(({ x }) => ({ y: x })),
      });
    bind("b");
    bind("a");
    await triton.ready();
    expect(await serviceOf(triton).repositoryIndex(true)).toEqual([
      { name: "a", version: "1", state: "READY" },
      { name: "b", version: "1", state: "READY" },
    ]);
  });
});
