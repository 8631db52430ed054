import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { batch, Triton } from "@tritonjs/core";
import { describe, expect, it, onTestFinished } from "vitest";
import { http } from "../src/index.js";
import { send } from "./support/send.js";

const body = '{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,1],"data":[1]}]}';
const infer = { path: "/v2/models/slow/infer", body };

/** A server of a model that takes its time. */
async function serve(milliseconds: number) {
  const triton = new Triton();
  onTestFinished(() => triton.close());
  triton.bind({
    modelName: "slow",
    inputs: [{ name: "IN", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "OUT", dtype: "FP32", shape: [1] }],
    inferFunc: batch(async ({ IN }) => {
      await sleep(milliseconds);
      return { OUT: IN };
    }),
    config: { maxBatchSize: 8 },
  });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
  return { triton, port: addresses.http!.port };
}

describe("closing", () => {
  it("turns ready false first, answers who comes with 503, and finishes what it has begun", async () => {
    const { triton, port } = await serve(300);
    const begun = send(port, infer);
    await sleep(100);
    const closed = triton.close();
    const ready = await send(port, { method: "GET", path: "/v2/health/ready" });
    expect([ready.status, ready.headers.connection]).toEqual([400, "close"]);
    const late = await send(port, infer);
    expect([late.status, late.headers.connection]).toEqual([503, "close"]);
    expect((await send(port, { method: "GET", path: "/v2/health/live" })).status).toBe(200);
    expect((await begun).status).toBe(200);
    await closed;
    await expect(send(port, infer)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  it("loses no request under load", async () => {
    const { triton, port } = await serve(5);
    const agent = new Agent({ keepAlive: true, maxSockets: 40 });
    onTestFinished(() => agent.destroy());
    const statuses: number[] = [];
    const failures: string[] = [];
    let refused = false;
    const client = async (): Promise<void> => {
      while (!refused) {
        try {
          const { status } = await send(port, { ...infer, agent });
          statuses.push(status);
          if (status !== 200) refused = true;
        } catch (error) {
          failures.push((error as NodeJS.ErrnoException).code ?? String(error));
          refused = true;
        }
      }
    };
    const clients = Array.from({ length: 40 }, client);
    await sleep(300);
    await triton.close();
    await Promise.all(clients);
    expect(failures).toEqual([]);
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(100);
  });

  it("does not wait for connections that are idle", async () => {
    const { triton, port } = await serve(1);
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    await send(port, { ...infer, agent });
    const started = performance.now();
    await triton.close();
    expect(performance.now() - started).toBeLessThan(1000);
  });
});
