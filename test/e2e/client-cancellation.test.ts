import type { ModelOptions, Triton } from "@tritonjs/core";
import type { InferenceRequest } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import type { Client, Way } from "../conformance/clients/client.js";
import { aborted, HeldModel, heldCall } from "./support/held-model.js";
import { onSent, openTriton, pendingRequests, serveAndConnect, until } from "./support/open-triton.js";

const schedulers: readonly { readonly scheduler: string; readonly config: ModelOptions }[] = [
  { scheduler: "direct scheduler", config: { batching: false } },
  { scheduler: "dynamic batcher", config: { maxBatchSize: 1 } },
];
const ways: readonly Way[] = ["in process", "HTTP JSON", "HTTP binary", "gRPC raw", "gRPC typed"];
const cases = schedulers.flatMap((one) => ways.map((way) => ({ ...one, way })));

async function open(config: ModelOptions, way: Way) {
  const triton = openTriton();
  const held = new HeldModel(triton, config);
  const clients = await serveAndConnect(triton);
  const client = clients.find((one) => one.way === way)!;
  const batched = config.batching !== false;
  const ask = (value: number, signal?: AbortSignal) => client.infer(heldCall(value, batched, signal));
  return { triton, held, client, ask };
}

describe.each(cases)("a client that leaves ($way, $scheduler)", ({ config, way }) => {
  it("aborts the signal of the callback that computes its answer", async () => {
    const { held, ask } = await open(config, way);
    const controller = new AbortController();
    const refused = expect(ask(1, controller.signal)).rejects.toThrow();
    await held.reached(1);
    expect(held.signals[0]!.aborted).toBe(false);
    controller.abort();
    await aborted(held.signals[0]!);
    await refused;
    held.release();
    expect((await ask(5)).outputs[0]!.elements).toEqual([10]);
  });

  it("removes its request from the queue and from memory at once", async () => {
    const { triton, held, client, ask } = await open(config, way);
    const first = ask(1);
    await held.reached(1);
    const controller = new AbortController();
    const waiting = waitingRequest(triton, client);
    const refused = expect(ask(2, controller.signal)).rejects.toThrow();
    const request = await waiting;
    await until(async () => (await pendingRequests(triton, "held")) === 1);
    controller.abort();
    await refused;
    await until(async () => (await pendingRequests(triton, "held")) === 0);
    if (request !== undefined) {
      expect(request.settled).toBe(true);
      expect(request.inputs.size).toBe(0);
    }
    held.release();
    expect((await first).outputs[0]!.elements).toEqual([2]);
    expect((await ask(3)).outputs[0]!.elements).toEqual([6]);
    expect(held.executed).toEqual([1, 3]);
  });
});

/** The next request that a frontend sends to the model. In-process calls do not count. */
function waitingRequest(triton: Triton, { way }: Client): Promise<InferenceRequest | undefined> {
  if (way === "in process") return Promise.resolve(undefined);
  return new Promise((resolve) => onSent(triton, (request) => resolve(request as InferenceRequest)));
}
