import { batch, type InferOptions, type ModelOptions, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf } from "../../../../test/support/outcome.js";

const clock = new VirtualClock();
let triton: Triton;

afterEach(async () => {
  const closed = triton.close();
  await clock.advance(60_000);
  await closed;
});

/** A model of sequences in four slots, whose batches take 10 ms for each row up to the highest slot, taught by 20 batches. */
async function bind(strategy: "direct" | "oldest", config: ModelOptions = {}) {
  triton = new Triton({ clock, allowCpuMetrics: false });
  const batches: number[][] = [];
  const model = { msPerRow: 10 };
  const handle = triton.bind({
    modelName: "echo",
    inputs: echoInputs,
    outputs: echoOutputs,
    inferFunc: batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
      batches.push([...x.data]);
      await new Promise<void>((done) => clock.setTimer(model.msPerRow * x.data.length, done));
      return { y: x };
    }),
    config: {
      maxBatchSize: 4,
      sequence: { strategy, maxSequenceIdleMicroseconds: 60_000_000 },
      parameters: { deadlines: "true" },
      ...config,
    },
  });
  await handle.ready();
  const send = (id: number, value: number, flags: object = {}, options: InferOptions = {}) =>
    outcomeOf(echo(handle, value, { sequence: { id, ...flags }, ...options }));
  const teach = async () => {
    for (let round = 0; round < 5; round++) {
      for (let slots = 1; slots <= 4; slots++) {
        const sent = Array.from({ length: slots }, (_, i) =>
          send(i + 1, 0, { start: round === 0 && i === slots - 1 }),
        );
        await clock.advance(60);
        await Promise.all(sent);
      }
    }
    batches.length = 0;
  };
  return { handle, batches, send, teach, model };
}

describe.each(["direct", "oldest"] as const)("deadlines of sequences under the %s strategy", (strategy) => {
  it("refuse a request without hope, and its sequence goes on", async () => {
    const { send, teach, batches } = await bind(strategy);
    await teach();
    const hopeless = send(1, 1, {}, { timeoutMs: 4 });
    await clock.settle();
    expect(await hopeless).toContain("Request for model 'echo' was refused: expected an answer within");
    const next = send(1, 2, {}, { timeoutMs: 500 });
    await clock.advance(60);
    expect(await next).toBe("done");
    expect(batches.flat()).not.toContain(1);
  });

  it("end a sequence whose START was refused, so that the model sees no request of it without a START", async () => {
    const { send, teach, batches } = await bind(strategy);
    await teach();
    const end = send(4, 0, { end: true });
    await clock.advance(60);
    expect(await end).toBe("done");
    const start = send(9, 1, { start: true }, { timeoutMs: 4 });
    const next = send(9, 2);
    await clock.advance(60);
    expect(await start).toContain("was refused");
    expect(await next).toMatch(
      /another request of the same sequence was cancelled|must specify the START flag/,
    );
    expect(await send(9, 3)).toContain("must specify the START flag");
    const again = send(9, 4, { start: true, end: true });
    await clock.advance(60);
    expect(await again).toBe("done");
    expect(batches.flat().filter((value) => value > 0)).toEqual([4]);
  });

  it("free the slot of a sequence whose END was refused", async () => {
    const { send, teach } = await bind(strategy);
    await teach();
    const end = send(2, 1, { end: true }, { timeoutMs: 4 });
    await clock.settle();
    expect(await end).toContain("was refused");
    const other = send(77, 5, { start: true, end: true });
    await clock.advance(100);
    expect(await other).toBe("done");
  });

  it("refuse nothing while the model is cold, and try again after a while when it seemed too slow", async () => {
    const { send, model } = await bind(strategy);
    const first = send(1, 1, { start: true, end: true }, { timeoutMs: 15 });
    await clock.advance(60);
    expect(await first).toBe("done");
    model.msPerRow = 100;
    for (let i = 0; i < 8; i++) {
      const slow = send(1, 1, { start: i === 0 });
      await clock.advance(500);
      await slow;
    }
    model.msPerRow = 10;
    const tight = send(1, 2, {}, { timeoutMs: 50 });
    await clock.settle();
    expect(await tight).toContain("was refused");
    await clock.advance(1500);
    const later = send(1, 3, {}, { timeoutMs: 50 });
    await clock.advance(60);
    expect(await later).toBe("done");
  });
});

describe("deadlines of sequences under the direct strategy", () => {
  it("leave higher slots to the next batch when a request in a low slot would be late with them", async () => {
    const { send, teach, batches } = await bind("direct");
    await teach();
    const sent = [
      send(1, 1, {}, { timeoutMs: 15 }),
      ...[2, 3, 4].map((id) => send(id, id, {}, { timeoutMs: 500 })),
    ];
    await clock.advance(200);
    expect(await Promise.all(sent)).toEqual(["done", "done", "done", "done"]);
    expect(batches[0]).toEqual([1]);
    expect(batches[1]!.slice(1)).toEqual([2, 3, 4]);
  });

  it("wait for further requests no longer than a deadline allows", async () => {
    const { send, batches } = await bind("direct", {
      sequence: { strategy: "direct", maxQueueDelayMicroseconds: 200_000, minimumSlotUtilization: 1 },
    });
    // All slots send, so nothing waits meanwhile.
    const start = [1, 2, 3, 4].map((id) => send(id, 0, { start: true }));
    await clock.advance(60);
    await Promise.all(start);
    for (let i = 0; i < 8; i++) {
      const sent = [1, 2, 3, 4].map((id) => send(id, 0));
      await clock.advance(60);
      await Promise.all(sent);
    }
    batches.length = 0;
    const tight = send(1, 5, {}, { timeoutMs: 100 });
    await clock.advance(100);
    expect(await tight).toBe("done");
  });
});
