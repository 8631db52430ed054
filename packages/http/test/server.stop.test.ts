import { EventEmitter, once } from "node:events";
import { Agent } from "node:http";
import { batch, Triton } from "@tritonjs/core";
import { describe, expect, it, onTestFinished } from "vitest";
import { http } from "../src/index.js";
import { send } from "./support/send.js";

const body = '{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,1],"data":[1]}]}';
const infer = { path: "/v2/models/slow/infer", body };

/** A server of a model that computes when the test allows it. */
async function serve() {
  const triton = new Triton();
  onTestFinished(() => triton.close());
  const events = new EventEmitter();
  const model = { rows: 0, gate: Promise.resolve() };
  triton.bind({
    modelName: "slow",
    inputs: [{ name: "IN", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "OUT", dtype: "FP32", shape: [1] }],
    inferFunc: batch(async ({ IN }) => {
      model.rows += IN.shape[0]!;
      events.emit("begun");
      await model.gate;
      return { OUT: IN };
    }),
    config: { maxBatchSize: 8 },
  });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
  return { triton, port: addresses.http!.port, model, events };
}

describe("closing a server under HTTP requests", () => {
  it("turns ready false, rejects new requests with 503, and finishes running ones", async () => {
    const { triton, port, model, events } = await serve();
    let release = () => {};
    model.gate = new Promise((resolve) => {
      release = resolve;
    });
    const inModel = once(events, "begun");
    const begun = send(port, infer);
    await inModel;
    const closed = triton.close();
    const ready = await send(port, { method: "GET", path: "/v2/health/ready" });
    expect([ready.status, ready.headers.connection]).toEqual([400, "close"]);
    const late = await send(port, infer);
    expect([late.status, late.headers.connection]).toEqual([503, "close"]);
    expect((await send(port, { method: "GET", path: "/v2/health/live" })).status).toBe(200);
    release();
    expect((await begun).status).toBe(200);
    await closed;
    await expect(send(port, infer)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  it("answers every request that has begun, under load", async () => {
    const { triton, port, model } = await serve();
    const agent = new Agent({ keepAlive: true, maxSockets: 40 });
    onTestFinished(() => agent.destroy());
    const statuses: number[] = [];
    const answers = new EventEmitter();
    const client = async (): Promise<void> => {
      for (;;) {
        // A connection may end with a request that has not been read yet: the client can send it again.
        const answer = await send(port, { ...infer, agent }).catch(() => undefined);
        if (answer === undefined) return;
        statuses.push(answer.status);
        if (statuses.length === 200) answers.emit("enough");
        if (answer.status !== 200) return;
      }
    };
    const enough = once(answers, "enough");
    const clients = Array.from({ length: 40 }, client);
    await enough;
    await triton.close();
    await Promise.all(clients);
    expect(statuses.filter((status) => status === 200).length).toBe(model.rows);
    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
  });
});
