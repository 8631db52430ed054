import { batch, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { expect, it } from "vitest";

it("a step that exceeds the timeout of its request ends that request, and the ensemble keeps working", async () => {
  const clock = new VirtualClock();
  const triton = new Triton({ clock });
  const number = { dtype: "INT32", shape: [1] } as const;
  let started = 0;
  for (const modelName of ["quick", "slow"]) {
    triton.bind({
      modelName,
      inputs: [{ name: "x", ...number }],
      outputs: [{ name: "y", ...number }],
      inferFunc: batch(async ({ x }) => {
        started++;
        const ms = modelName === "slow" ? x.get(0, 0) : 1;
        await new Promise<void>((resolve) => clock.setTimer(ms, resolve));
        return { y: x };
      }),
    });
  }
  const handle = triton.bindEnsemble({
    modelName: "both",
    inputs: [{ name: "x", ...number }],
    outputs: [{ name: "y", ...number }],
    steps: [
      { modelName: "quick", inputMap: { x: "x" }, outputMap: { y: "m" } },
      { modelName: "slow", inputMap: { x: "m" }, outputMap: { y: "y" } },
    ],
  });
  await handle.ready();
  const late = handle.inferSample({ x: [500] }, { timeoutMs: 100 });
  const refused = expect(late).rejects.toMatchObject({ code: "UNAVAILABLE" });
  await clock.advance(150);
  await refused;
  expect(started).toBe(2);
  await clock.advance(1000);
  const next = handle.inferSample({ x: [5] }, { timeoutMs: 100 });
  await clock.advance(50);
  expect((await next).y.get(0)).toBe(5);
  const { success, fail } = handle.statistics().inferenceStats;
  expect([success.count, fail.count]).toEqual([1, 1]);
  await triton.close();
});
