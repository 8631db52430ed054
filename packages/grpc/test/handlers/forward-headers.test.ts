import { status } from "@grpc/grpc-js";
import { encodeMessage, inference } from "@tritonjs/protocol/grpc";
import { expect, test } from "vitest";
import { FakeService } from "../support/fake-service.js";
import { overEachTransport } from "../support/over-each-transport.js";
import { framed, rawCall, rawSession } from "../support/raw-call.js";
import { serve } from "../support/serve.js";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const keepsSpaces = major > 24 || (major === 24 && minor >= 2) || (major === 22 && minor >= 17);

const headerForwardPattern = /my-|seq|triton_/g;

overEachTransport("headers that match the forward pattern", () => {
  test("become string parameters of every request and override its own", async () => {
    const service = new FakeService();
    const { client } = await serve(service, { headerForwardPattern });
    const extras = {
      headers: [
        ["my-user", "Bob"],
        ["not-my-b", ""],
        ["other", "x"],
      ] as const,
    };
    await client.infer({ modelName: "m", parameters: { "my-user": { stringParam: "eve" } } }, extras);
    await client.infer({ modelName: "m" }, extras);
    expect(service.requests.map(({ parameters }) => parameters)).toEqual([
      { "my-user": "Bob", "not-my-b": "" },
      { "my-user": "Bob", "not-my-b": "" },
    ]);
  });

  test.each(["sequence_id", "triton_x"])("are rejected under the reserved name %s", async (name) => {
    const { client } = await serve(new FakeService(), { headerForwardPattern });
    await expect(client.infer({ modelName: "m" }, { headers: [[name, "5"]] })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: `Header '${name}' is reserved for Triton usage and cannot be forwarded.`,
    });
  });

  test("are not forwarded without a pattern", async () => {
    const service = new FakeService();
    const { client } = await serve(service);
    await client.infer({ modelName: "m" }, { headers: [["my-user", "Bob"]] });
    expect(service.requests[0]!.parameters).toEqual({});
  });
});

test.runIf(keepsSpaces)(
  `headers are forwarded with a trailing space in their value${keepsSpaces ? "" : " (skipped: this Node drops such headers)"}`,
  async () => {
    const service = new FakeService();
    const { address } = await serve(service, { headerForwardPattern });
    const body = framed(encodeMessage(inference.ModelInferRequest, { modelName: "m" }));
    await rawCall(rawSession(address.url), body, { "my-user": "Bob " });
    expect(service.requests[0]!.parameters).toEqual({ "my-user": "Bob " });
  },
);
