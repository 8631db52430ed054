import { InferenceServerClient } from "@tritonjs/client/grpc";
import { encodeMessage, inference } from "@tritonjs/protocol/grpc";
import { describe, expect, it, onTestFinished } from "vitest";
import { framed, rawCall, rawSession } from "../../packages/grpc/test/support/raw-call.js";
import { useServer } from "./support/open-server.js";

const server = useServer();

const huge = [
  ["2^32 x 2^32", [2 ** 32, 2 ** 32]],
  ["2^32 x 2^32 x 0", [2 ** 32, 2 ** 32, 0]],
  ["2^53", [2 ** 53]],
  ["2^40", [2 ** 40]],
] as const;

describe("a shape with a huge or overflowing product", () => {
  it.each(huge)("of %s elements is refused over HTTP", async (_text, shape) => {
    for (const data of ['"data":["a"]', '"parameters":{"binary_data_size":0}']) {
      const body = `{"inputs":[{"name":"x","datatype":"BYTES","shape":[${shape}],${data}}]}`;
      const answer = await fetch(`http://localhost:${server.httpPort}/v2/models/echo/infer`, {
        method: "POST",
        headers: { "inference-header-content-length": `${body.length}` },
        body,
      });
      expect(answer.status).toBe(400);
      await answer.text();
    }
    await server.serves();
  });

  it.each(huge)("of %s elements is refused over gRPC", async (_text, shape) => {
    const session = rawSession(`localhost:${server.grpcPort}`);
    for (const rawInputContents of [[Buffer.alloc(0)], [Buffer.of(1, 0, 0, 0, 97)]]) {
      const inputs = [{ name: "x", datatype: "BYTES", shape: [...shape] }];
      const message = encodeMessage(inference.ModelInferRequest, {
        modelName: "echo",
        inputs,
        rawInputContents,
      });
      expect((await rawCall(session, framed(message))).grpcStatus).toBe(3);
    }
    await server.serves();
  });
});

describe("a string that claims 4 GiB", () => {
  const claim = Buffer.of(0xff, 0xff, 0xff, 0xff, 97);

  it("is refused over HTTP, without memory for it", async () => {
    const header = `{"inputs":[{"name":"x","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":${claim.length}}}]}`;
    const answer = await fetch(`http://localhost:${server.httpPort}/v2/models/echo/infer`, {
      method: "POST",
      headers: { "inference-header-content-length": `${header.length}` },
      body: Buffer.concat([Buffer.from(header), claim]),
    });
    expect([answer.status, await answer.text()]).toEqual([
      400,
      expect.stringContaining("incomplete string data"),
    ]);
    await server.serves();
  });

  it("is refused over gRPC", async () => {
    const session = rawSession(`localhost:${server.grpcPort}`);
    const inputs = [{ name: "x", datatype: "BYTES", shape: [1] }];
    const rawInputContents = [claim];
    const message = encodeMessage(inference.ModelInferRequest, {
      modelName: "echo",
      inputs,
      rawInputContents,
    });
    expect((await rawCall(session, framed(message))).grpcStatus).toBe(3);
    await server.serves();
  });
});

it("more outputs than the limit are refused before any is made", async () => {
  const client = new InferenceServerClient(`localhost:${server.grpcPort}`);
  onTestFinished(() => client.close());
  const outputs = Array.from({ length: 5000 }, (_, index) => ({ name: `y${index}` }));
  const inputs = { x: { datatype: "BYTES", shape: [1], data: ["a"] } } as const;
  await expect(client.infer("echo", { inputs, outputs })).rejects.toThrow("4096");
  const answer = await fetch(`http://localhost:${server.httpPort}/v2/models/echo/infer`, {
    method: "POST",
    body: JSON.stringify({ inputs: [{ name: "x", datatype: "BYTES", shape: [1], data: ["a"] }], outputs }),
  });
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining("4096")]);
  await server.serves();
});
