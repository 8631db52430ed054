import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { sample, TritonError, type TritonOptions } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { openTriton } from "./support/open-triton.js";

/** Calls that both clients can make, and that fail without the token. */
const restricted = {
  statistics: (client: HttpClient | GrpcClient) => client.getInferenceStatistics(),
  "model-repository": (client: HttpClient | GrpcClient) => client.getModelRepositoryIndex(),
  "shared-memory": (client: HttpClient | GrpcClient) => client.getSystemSharedMemoryStatus(),
  logging: (client: HttpClient | GrpcClient) => client.getLogSettings(),
};

async function serve(options: TritonOptions) {
  const triton = openTriton(options);
  const { addresses } = await triton.serve();
  const clients = (accessToken?: string) => {
    const made = [
      new HttpClient(addresses.http!.url, { accessToken }),
      new GrpcClient(addresses.grpc!.url, { accessToken }),
    ];
    onTestFinished(async () => {
      for (const client of made) await client.close();
    });
    return made;
  };
  return { triton, clients };
}

describe("a server", () => {
  it.each(Object.entries(restricted))("requires its access token by default: %s", async (_group, ask) => {
    const { triton, clients } = await serve({ security: undefined });
    for (const client of [...clients(), ...clients("wrong")]) {
      await expect(ask(client)).rejects.toThrow(/is restricted, expecting header '.*triton-access-token'/);
      expect(await client.isServerReady()).toBe(true);
    }
    for (const client of clients(serviceOf(triton).accessToken))
      await expect(ask(client)).resolves.toBeDefined();
  });

  it("requires the given token for the given endpoints", async () => {
    const security = { accessToken: "mine", restrictedEndpoints: ["metadata"] } as const;
    const { triton, clients } = await serve({ security });
    expect(serviceOf(triton).accessToken).toBe("mine");
    for (const client of clients()) {
      await expect(client.getServerMetadata()).rejects.toThrow("is restricted");
      await expect(restricted.statistics(client)).resolves.toBeDefined();
    }
    for (const client of clients("mine")) await expect(client.getServerMetadata()).resolves.toBeDefined();
  });

  it("requires no token when nothing is restricted", async () => {
    const { triton, clients } = await serve({ security: { restrictedEndpoints: [] } });
    expect(serviceOf(triton).accessToken).toBeUndefined();
    for (const ask of Object.values(restricted)) {
      for (const client of clients()) await expect(ask(client)).resolves.toBeDefined();
    }
  });
});

describe("authentication", () => {
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
});
