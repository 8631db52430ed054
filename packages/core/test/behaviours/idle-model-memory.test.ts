import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { batch, Triton } from "@tritonjs/core";
import { expect, it } from "vitest";

it("an idle model keeps no reference to the requests of its last batch", async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  await using triton = new Triton();
  const seen: WeakRef<object>[] = [];
  const model = triton.bind({
    modelName: "m",
    inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [4] }],
    inferFunc: batch(({ x }, { requests }) => {
      seen.push(...requests.map((request) => new WeakRef(request)));
      return { y: x };
    }),
    config: { maxBatchSize: 8 },
  });
  const infer = () => model.inferSample({ x: [1, 2, 3, 4] });
  await Promise.all(Array.from({ length: 20 }, infer));
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  expect(seen).toHaveLength(20);
  expect(seen.filter((request) => request.deref() !== undefined)).toHaveLength(0);
});
