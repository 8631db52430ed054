import { batch, TritonError } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it } from "vitest";
import { openServer } from "./support/open-server.js";

const ROWS = 8;
const MOST_QUEUED = 16;
/** Batches of the model in a test. */
const TURNS = 40;
/** Three times what the model takes in a turn. */
const OFFERED = 3 * ROWS;

/** A model that runs a batch at each turn, and refuses requests that do not fit into its queue. */
async function openModel() {
  let next: () => void = () => {};
  const executed: number[] = [];
  const server = await openServer({
    bind(triton) {
      triton.bind({
        modelName: "turns",
        inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
        outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
        inferFunc: batch(async ({ x }) => {
          executed.push(x.shape[0]!);
          await new Promise<void>((resolve) => {
            next = resolve;
          });
          return { y: x };
        }),
        config: { maxBatchSize: ROWS, batcher: { defaultQueuePolicy: { maxQueueSize: MOST_QUEUED } } },
      });
    },
  });
  return { server, executed, queue: () => serviceOf(server.triton).queue("turns", ""), turn: () => next() };
}

type Opened = Awaited<ReturnType<typeof openModel>>;

/** Sends a request, and resolves with what became of it: the same number, or a refusal. */
type Send = (value: number) => Promise<number>;

const input = (value: number) => ({ x: { datatype: "INT32", shape: [1, 1], data: [value] } }) as const;

const ways: Readonly<Record<string, (opened: Opened) => Send>> = {
  HTTP:
    ({ server }) =>
    async (value) =>
      (await server.clients[0].infer("turns", { inputs: input(value) })).elements("y", "INT32")[0]!,
  gRPC:
    ({ server }) =>
    async (value) =>
      (await server.clients[1].infer("turns", { inputs: input(value) })).elements("y", "INT32")[0]!,
  "streams of gRPC":
    ({ server }) =>
    async (value) => {
      const requests = [{ modelName: "turns", inputs: input(value) }];
      for await (const { result, error } of server.clients[1].streamInfer(requests)) {
        if (error !== undefined) throw error;
        if (result !== undefined) return result.elements("y", "INT32")[0]!;
      }
      throw new Error("the stream ended without an answer");
    },
};

describe.each(Object.entries(ways))("with three times its capacity over %s, a server", (_way, wayOf) => {
  it("answers as much as without overload, refuses the rest, and reports that it is ready", async () => {
    const opened = await openModel();
    const { server, executed, queue, turn } = opened;
    const send = wayOf(opened);
    const settled = { answered: 0, refused: 0, sent: 0 };
    const other: unknown[] = [];
    const all: Promise<void>[] = [];
    const offer = () => {
      const value = settled.sent++;
      const one = send(value).then(
        (answer) => {
          expect(answer).toBe(value);
          settled.answered++;
        },
        (error: unknown) => {
          // An error on a stream has a text and no code.
          if (TritonError.is(error) && error.message.includes("Exceeds maximum queue size"))
            settled.refused++;
          else other.push(error);
        },
      );
      all.push(one);
    };
    const waiting = () => {
      const { queued, instances } = queue();
      const running = instances.flatMap((instance) => instance.running);
      return queued + running.reduce((sum, { requests }) => sum + requests, 0);
    };
    const allArrived = () =>
      expect
        .poll(() => settled.answered + settled.refused + other.length + waiting(), { interval: 1 })
        .toBe(settled.sent);
    for (let round = 0; round < TURNS; round++) {
      for (let request = 0; request < OFFERED; request++) offer();
      await allArrived();
      expect(queue().queued).toBeLessThanOrEqual(MOST_QUEUED + ROWS);
      const health = await fetch(`http://localhost:${server.httpPort}/v2/health/ready`);
      expect(health.status).toBe(200);
      await health.arrayBuffer();
      turn();
      await expect.poll(() => executed.length, { interval: 1 }).toBeGreaterThan(round + 1);
    }
    const goodput = executed.slice(0, TURNS).reduce((sum, rows) => sum + rows, 0);
    expect(goodput).toBeGreaterThanOrEqual(0.9 * TURNS * ROWS);
    while (waiting() > 0) {
      turn();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(all);
    expect(other).toEqual([]);
    expect(settled.answered + settled.refused).toBe(settled.sent);
    expect(settled.answered).toBe(executed.reduce((sum, rows) => sum + rows, 0));
    await server.serves();
  });
});
