import { sample } from "@tritonjs/core";
import { expect, it } from "vitest";
import { Events } from "./support/events.js";
import { openDashboard } from "./support/open-dashboard.js";

it("a viewer gets the rows of all models once, then those that changed, and all again when one comes", async () => {
  const { triton, double, root } = await openDashboard();
  const bind = (modelName: string) =>
    triton.bind({
      modelName,
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: sample(({ x }) => ({ y: x })),
    });
  for (let i = 0; i < 1200; i++) bind(`m${i}`);
  await triton.ready();
  const events = await Events.open(`${root}/api/events/double/1`);
  const first = await events.next("summary");
  expect([first.hasAll, first.models.length]).toEqual([true, 1201]);
  // The rate of the first sample is not known, so the second changes all rows.
  await events.next("summary", ({ hasAll, models }) => !hasAll && models.length === 0);
  await double.inferSample({ x: [1] });
  const changed = await events.next("summary", ({ models }) => models.length > 0);
  expect(changed.hasAll).toBe(false);
  expect(changed.models.map(({ name }: { name: string }) => name)).toEqual(["double"]);
  bind("late");
  const all = await events.next("summary", ({ hasAll }) => hasAll);
  expect(all.models).toHaveLength(1202);
  // The plot of the chosen model goes on, whether or not its row has changed.
  const { point } = await events.next("detail");
  expect((await events.next("detail")).point[0]).toBeGreaterThan(point[0]);
});
