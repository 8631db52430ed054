import { batch, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { expect, it, onTestFinished } from "vitest";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomesOf } from "../../../../test/support/outcome.js";

/** A clock whose time passes while a callback blocks the event loop, so that no timer fires. */
class BlockableClock extends VirtualClock {
  #blockedMs = 0;

  override now(): number {
    return super.now() + this.#blockedMs;
  }

  block(ms: number): void {
    this.#blockedMs += ms;
  }
}

const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;

function blockedTriton() {
  const clock = new BlockableClock();
  const warnings: string[] = [];
  const logger = { error() {}, warn: (text: string) => warnings.push(text), info() {}, debug() {} };
  const triton = new Triton({ clock, logger });
  onTestFinished(() => triton.close());
  return { clock, triton, warnings };
}

it("answers calls whose time limit passed while a callback blocked with the time-out", async () => {
  const { clock, triton, warnings } = blockedTriton();
  let runs = 0;
  const handle = triton.bind({
    ...specs,
    config: { maxBatchSize: 1 },
    inferFunc: batch(({ x }) => {
      runs++;
      clock.block(3000);
      return { y: x };
    }),
  });
  await handle.ready();
  const outcomes = outcomesOf([1, 2].map((value) => handle.infer({ x: [[value]] }, { timeoutMs: 500 })));
  await clock.settle();
  expect(await outcomes).toEqual(Array(2).fill("UNAVAILABLE Request timeout expired"));
  expect(runs).toBe(1);
  expect(warnings).toEqual([expect.stringMatching(/^model 'm' held the event loop for 3000 ms: /)]);
  expect(handle.statistics().inferenceStats.fail.count).toBe(2);
});

it("warns once of a model that blocks, also between the steps of a generator", async () => {
  const { clock, triton, warnings } = blockedTriton();
  const handle = triton.bind({
    ...specs,
    config: { decoupled: true },
    inferFunc: batch(function* ({ x }) {
      yield { y: x };
      clock.block(1500);
      yield { y: x };
    }),
  });
  for (let i = 0; i < 2; i++) {
    const answers: unknown[] = [];
    const reading = (async () => {
      for await (const answer of handle.stream({ x: [[i]] })) answers.push(answer);
    })();
    await clock.settle();
    await reading;
    expect(answers).toHaveLength(2);
  }
  expect(warnings).toEqual([expect.stringMatching(/^model 'm' held the event loop for 1500 ms: /)]);
});

it("does not warn of a callback that waits", async () => {
  const { clock, triton, warnings } = blockedTriton();
  const handle = triton.bind({
    ...specs,
    inferFunc: batch(async ({ x }) => {
      await new Promise<void>((resolve) => clock.setTimer(1000, resolve));
      return { y: x };
    }),
  });
  await handle.ready();
  const answer = echo(handle, 1);
  await clock.advance(1000);
  expect(await answer).toBe(1);
  expect(warnings).toEqual([]);
});
