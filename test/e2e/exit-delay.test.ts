import { Agent, request } from "node:http";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import { sample, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { expect, it } from "vitest";

/** Sends an inference over a kept connection, and returns the status and how the connection goes on. */
function infer(url: string, agent: Agent): Promise<[status: number, connection: string | undefined]> {
  const body = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1], data: [1] }] });
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/v2/models/double/infer`, { method: "POST", agent }, (response) => {
      response.resume();
      response.once("end", () => resolve([response.statusCode!, response.headers.connection]));
    });
    sent.once("error", reject);
    sent.end(body);
  });
}

it("before the drain, a server is not ready but answers, and tells clients to leave their connections", async () => {
  const clock = new VirtualClock();
  const triton = new Triton({ clock, exitDelaySecs: 10 });
  triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
  });
  const frontends = [http({ port: 0 }), grpc({ port: 0 })];
  const { addresses } = await triton.serve({ frontends });
  const { url } = addresses.http!;
  const agent = new Agent({ keepAlive: true });
  const client = new InferenceServerClient(addresses.grpc!.url);
  try {
    const ready = async () => [(await fetch(`${url}/v2/health/ready`)).status, await client.isServerReady()];
    expect(await infer(url, agent)).toEqual([200, "keep-alive"]);
    expect(await ready()).toEqual([200, true]);

    const closed = triton.close();
    await expect.poll(ready).toEqual([400, false]);
    expect(await infer(url, agent)).toEqual([200, "close"]);
    expect(
      (await client.infer("double", { inputs: { x: Float32Array.of(4) } })).tensor("y").elements,
    ).toEqual(Float32Array.of(8));
    expect((await fetch(`${url}/v2/health/live`)).status).toBe(200);

    await clock.advance(10_000);
    await closed;
    await expect(infer(url, agent)).rejects.toThrow(/ECONNREFUSED|ECONNRESET|socket hang up/);
  } finally {
    client.close();
    agent.destroy();
    await triton.close();
  }
});
