import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { describe, expect, it } from "vitest";
import { type Client, type InferCall, Refusal, WAYS } from "../conformance/clients/client.js";
import { irisModel } from "../support/iris.js";
import { HeldModel, heldCall } from "./support/held-model.js";
import { onSent, openTriton, serveAndConnect, until } from "./support/open-triton.js";

describe("close() under requests", () => {
  it("answers accepted requests, executed or not, and rejects later ones, for every client", async () => {
    const triton = openTriton();
    const held = new HeldModel(triton, { batching: false, instanceGroup: { count: 2 } });
    const clients = await serveAndConnect(triton);
    let sent = 0;
    onSent(triton, () => sent++);
    const calls = clients.flatMap((client, way) => [0, 1, 2].map((n) => ({ client, value: 10 * way + n })));
    const answers = calls.map(({ client, value }) => client.infer(heldCall(value, false)));
    // In-process calls are accepted at once; others when their frontends have passed them on.
    const overTransports = calls.filter(({ client }) => client.way !== "in process").length;
    await until(() => sent === overTransports);
    await held.reached(2);

    const closing = triton.close();
    await until(() => !triton.service.isReady());
    for (const client of clients) await expectRefused(client, heldCall(99, false));
    expect(held.executed).toHaveLength(2);

    held.release();
    const values = (await Promise.all(answers)).map(({ outputs }) => outputs[0]!.elements[0]);
    expect(values).toEqual(calls.map(({ value }) => 2 * value));
    await closing;
    expect([...held.executed].sort((a, b) => a - b)).toEqual(calls.map(({ value }) => value));
  });

  it.each(WAYS)(
    "settles every request once under load, closing at the first answer %s",
    async (closesAfter) => {
      const triton = openTriton();
      const iris = triton.bind({
        modelName: "iris",
        inferFunc: onnxruntime({ model: irisModel }),
        config: { maxBatchSize: 8 },
      });
      const clients = await serveAndConnect(triton);
      const settled = new Array<number>(clients.length * 16).fill(0);
      let closing: Promise<void> | undefined;
      const outcomes = await Promise.allSettled(
        settled.map(async (_count, i) => {
          const client = clients[i % clients.length]!;
          try {
            return await client.infer(irisCall);
          } finally {
            settled[i]!++;
            if (client.way === closesAfter) closing ??= triton.close();
          }
        }),
      );
      await closing;
      expect(new Set(settled)).toEqual(new Set([1]));
      const answered = outcomes.filter((outcome) => outcome.status === "fulfilled");
      expect(answered.length).toBe(iris.statistics().inferenceCount);
      expect(answered.length).toBeGreaterThan(0);
      for (const { value } of answered) {
        expect(value.outputs.find(({ name }) => name === "species")!.elements).toEqual([0n]);
      }
      for (const outcome of outcomes) {
        if (outcome.status === "rejected") expectUnavailable(outcome.reason);
      }
    },
  );

  it("ends requests that are not done within exitTimeoutSecs", async () => {
    const triton = openTriton({ exitTimeoutSecs: 0 });
    const held = new HeldModel(triton, { batching: false });
    const clients = await serveAndConnect(triton);
    let sent = 0;
    onSent(triton, () => sent++);
    const answers = clients.map((client, i) => client.infer(heldCall(i, false)));
    const settled = Promise.allSettled(answers);
    await until(() => sent === clients.length - 1);
    await held.reached(1);
    const closing = triton.close();
    for (const outcome of await settled) {
      expect(outcome.status).toBe("rejected");
      if (outcome.status === "rejected") expectUnavailable(outcome.reason);
    }
    await closing;
  });
});

const irisCall: InferCall = {
  model: "iris",
  inputs: [{ name: "measurements", datatype: "FP32", shape: [1, 4], elements: [5.1, 3.5, 1.4, 0.2] }],
};

async function expectRefused(client: Client, call: InferCall): Promise<void> {
  const outcome = await client.infer(call).catch((error: unknown) => error);
  expectUnavailable(outcome);
}

/** Expects UNAVAILABLE in the form of any client, or a refused connection. */
function expectUnavailable(error: unknown): void {
  if (error instanceof Refusal) expect(["UNAVAILABLE", 503]).toContain(error.status);
  // The second words are Bun's.
  else expect(String(error)).toMatch(/^TypeError: (fetch failed$|ECONNRESET: )/);
}
