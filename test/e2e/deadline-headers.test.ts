import * as grpcClient from "@tritonjs/client/grpc";
import { batch, Triton, TritonError } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { echo, echoInputs, echoOutputs } from "../support/echo-model.js";

/** Long enough for a client on a busy machine to be refused before its own limit passes. */
const BATCH_MS = 60_000;
const clock = new VirtualClock();
const triton = new Triton({ clock, exitTimeoutSecs: 0 });
const slow = batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
  await new Promise<void>((done) => clock.setTimer(BATCH_MS, done));
  return { y: x };
});
const model = (modelName: string, deadlines: boolean) =>
  triton.bind({
    modelName,
    inputs: echoInputs,
    outputs: echoOutputs,
    inferFunc: slow,
    config: { maxBatchSize: 1, batcher: { deadlines } },
  });
const handle = model("timed", true);
const plain = model("plain", false);
let urls: Record<"http" | "grpc", string>;

beforeAll(async () => {
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
  urls = { http: addresses.http!.url, grpc: addresses.grpc!.url };
  for (let i = 0; i < 6; i++) await runBoth();
});

afterAll(() => triton.close());

/** Runs a batch of each model, so that what is known of them is fresh. */
async function runBoth(): Promise<void> {
  const sent = [echo(handle, 1), echo(plain, 1)];
  await clock.advance(BATCH_MS);
  await Promise.all(sent);
}

/** Sends a request over HTTP, and lets time pass until it is answered. */
async function post(name: string, headers: Record<string, string>, runs = true): Promise<[number, string]> {
  const body = JSON.stringify({ inputs: [{ name: "x", datatype: "INT32", shape: [1, 1], data: [7] }] });
  const response = fetch(`${urls.http}/v2/models/${name}/infer`, {
    method: "POST",
    headers,
    body,
  });
  let done = false;
  void response.finally(() => {
    done = true;
  });
  while (!done) await clock.advance(runs ? BATCH_MS / 4 : 0);
  const answer = await response;
  return [answer.status, await answer.text()];
}

describe("the time that a client waits", () => {
  it.each([
    ["tritonjs-timeout-ms", "20000"],
    ["grpc-timeout", "20000m"],
    ["grpc-timeout", "20S"],
  ])("is the deadline of a request over HTTP: %s: %s", async (name, value) => {
    await runBoth();
    const [status, text] = await post("timed", { [name]: value }, false);
    expect(status).toBe(503);
    expect(text).toContain("was refused: expected an answer within 20000 ms, got an estimate of 60000 ms");
    expect((await post("timed", { [name]: value.replace("20", "90000") }))[0]).toBe(200);
  });

  it("is ignored by models without deadlines, as in Triton", async () => {
    expect((await post("plain", { "tritonjs-timeout-ms": "1", "grpc-timeout": "nonsense" }))[0]).toBe(200);
  });

  it.each([
    ["tritonjs-timeout-ms", "soon", "expected a number of milliseconds above 0, got 'soon'"],
    ["grpc-timeout", "5", "expected up to 8 digits and a unit of H, M, S, m, u or n, got '5'"],
  ])("must be a time: %s: %s", async (name, value, why) => {
    const [status, text] = await post("timed", { [name]: value });
    expect(status).toBe(400);
    expect(text).toContain(`header '${name}': ${why}`);
  });

  it("is the deadline of a call over gRPC", async () => {
    const client = new grpcClient.InferenceServerClient(urls.grpc);
    const inputs = { x: { datatype: "INT32", shape: [1, 1], data: [7] } } as const;
    await runBoth();
    const error = await client
      .infer("timed", { inputs, timeoutMs: 20_000 })
      .catch((thrown: unknown) => thrown);
    expect(TritonError.is(error) && error.message).toMatch(
      /was refused: expected an answer within \d+ ms, got an estimate of 60000 ms/,
    );
    await client.close();
  });
});
