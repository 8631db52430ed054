import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { sample, TritonError } from "@tritonjs/core";
import { expect, it, onTestFinished } from "vitest";
import { openTriton } from "./support/open-triton.js";

it("one hook guards all ports of a server, and lets probes through", async () => {
  const asked: string[] = [];
  const triton = openTriton({
    security: {
      restrictedEndpoints: [],
      authenticate: async ({ transport, group, headers }) => {
        asked.push(`${transport} ${group}`);
        if (headers.get("authorization") === "Bearer secret") return;
        throw new TritonError("UNAVAILABLE", "a token is required", { reason: "UNAUTHENTICATED" });
      },
    },
  });
  triton.bind({
    modelName: "m",
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: sample(({ x }) => ({ y: x.data })),
  });
  const { addresses } = await triton.serve();
  const inputs = { x: { datatype: "FP32", data: [3] } } as const;
  for (const Client of [HttpClient, GrpcClient]) {
    const url = Client === HttpClient ? addresses.http!.url : addresses.grpc!.url;
    const client = new Client(url);
    onTestFinished(() => void client.close());
    expect(await client.isServerReady()).toBe(true);
    await expect(client.infer("m", { inputs })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      reason: "UNAUTHENTICATED",
      message: "a token is required",
    });
    const headers = { authorization: "Bearer secret" };
    const result = await client.infer("m", { inputs, headers });
    expect([...result.elements("y", "FP32")]).toEqual([3]);
  }
  expect(new Set(asked)).toEqual(new Set(["http inference", "grpc inference"]));
  const page = `${addresses.metrics!.url}/metrics`;
  expect((await fetch(page)).status).toBe(401);
  expect((await fetch(page, { headers: { authorization: "Bearer secret" } })).status).toBe(200);
});
