import { status } from "@grpc/grpc-js";
import { encodeBytes } from "@tritonjs/protocol";
import { eachField, inference } from "@tritonjs/protocol/grpc";
import { describe, expect, test } from "vitest";
import { decodeInputs } from "../../src/infer/infer-request.js";
import { inferRequestDecoder } from "../../src/infer/infer-request-limits.js";
import { FakeService, modelConfig } from "../support/fake-service.js";
import { overEachTransport } from "../support/over-each-transport.js";
import { framed, rawCall, rawSession } from "../support/raw-call.js";
import { serve } from "../support/serve.js";

/** A length-delimited field. */
function field(number: number, bytes: Uint8Array | string): Buffer {
  const value = Buffer.from(bytes as string);
  const length = [];
  let rest = value.length;
  for (; rest > 127; rest >>>= 7) length.push((rest & 127) | 128);
  return Buffer.concat([Buffer.of((number << 3) | 2, ...length, rest), value]);
}

const name = field(1, "m");
const parameter = (key: string) => Buffer.concat([field(1, key), field(2, Buffer.of(8, 1))]);
const many = (count: number, part: (index: number) => Buffer) =>
  Buffer.concat([name, ...Array.from({ length: count }, (_, index) => part(index))]);

const PARTS = {
  parameters: (index: number) => field(4, parameter(`k${index}`)),
  inputs: (index: number) => field(5, field(1, `x${index}`)),
  outputs: (index: number) => field(6, field(1, `y${index}`)),
  raw_input_contents: () => field(7, ""),
};

overEachTransport("the gRPC server", () => {
  test.each(Object.keys(PARTS) as (keyof typeof PARTS)[])("rejects a request with 4097 %s", async (kind) => {
    const service = new FakeService();
    const { client, address } = await serve(service);
    const { grpcStatus, message } = await rawCall(rawSession(address.url), framed(many(4097, PARTS[kind])));
    expect(grpcStatus).toBe(status.INVALID_ARGUMENT);
    expect(decodeURI(message!)).toBe(
      `request has 4097 ${kind}, which exceeds the maximum allowed number of 4096`,
    );
    expect(service.requests).toEqual([]);
    await expect(client.infer({ modelName: "m", id: "next" })).resolves.toMatchObject({ id: "next" });
  });

  test("accepts 4096 parameters", async () => {
    const service = new FakeService();
    const { address } = await serve(service);
    const { grpcStatus } = await rawCall(rawSession(address.url), framed(many(4096, PARTS.parameters)));
    expect(grpcStatus).toBe(status.OK);
    expect(Object.keys(service.requests[0]!.parameters)).toHaveLength(4096);
  });

  test("ends a stream whose request has too many parts", async () => {
    const { address } = await serve(new FakeService());
    const path = "/inference.GRPCInferenceService/ModelStreamInfer";
    const body = framed(many(4097, PARTS.inputs));
    const { grpcStatus } = await rawCall(rawSession(address.url), body, { ":path": path });
    expect(grpcStatus).toBe(status.INVALID_ARGUMENT);
  });

  test("limits other messages to 65536 fields", async () => {
    const { address } = await serve(new FakeService());
    const path = "/inference.GRPCInferenceService/TraceSetting";
    const settings = (count: number) =>
      framed(Buffer.concat(Array.from({ length: count }, (_, index) => field(1, field(1, `k${index}`)))));
    const session = rawSession(address.url);
    const { grpcStatus, message } = await rawCall(session, settings(30_000), { ":path": path });
    expect(grpcStatus).toBe(status.UNAVAILABLE);
    const tooMany = await rawCall(session, settings(40_000), { ":path": path });
    expect(decodeURI(message!)).toBe("the server does not support trace");
    expect(tooMany.grpcStatus).toBe(status.INVALID_ARGUMENT);
    expect(decodeURI(tooMany.message!)).toContain("expected at most 65536 fields, got more");
  });
});

describe("the parts of a decoded request", () => {
  const models = (inputs: number) => {
    const input = Array.from({ length: inputs }, () => ({}) as never);
    return {
      model: (model: string) => ({
        name: model,
        version: 1,
        config: modelConfig(model, { input }),
        labels: new Map(),
      }),
    };
  };

  test("may be as many as the model has tensors", () => {
    const message = many(5000, PARTS.inputs);
    const decoded = inferRequestDecoder(models(5000)).decodeRequest(message);
    expect(decoded.inputs).toHaveLength(5000);
    expect(() => inferRequestDecoder(models(4999)).decodeRequest(message)).toThrow(
      "request has 5000 inputs, which exceeds the maximum allowed number of 4999",
    );
  });

  test("include the parameters of tensors", () => {
    const input = Buffer.concat(
      Array.from({ length: 16_385 }, (_, index) => field(4, parameter(`k${index}`))),
    );
    expect(() =>
      inferRequestDecoder(models(1)).decodeRequest(Buffer.concat([name, field(5, input)])),
    ).toThrow("request has 16385 parameters of tensors, which exceeds the maximum allowed number of 16384");
  });

  test.each([
    ["packed", (count: number) => field(3, Buffer.alloc(count, 1))],
    ["not packed", (count: number) => Buffer.alloc(2 * count, Buffer.of(3 << 3, 1))],
  ])("may have 1024 dimensions of an input, %s", (_form, shape) => {
    const message = (count: number) =>
      Buffer.concat([name, field(5, Buffer.concat([field(1, "x"), shape(count)]))]);
    const { decodeRequest } = inferRequestDecoder(models(1));
    expect(decodeRequest(message(1024)).inputs[0]!.shape).toHaveLength(1024);
    expect(() => decodeRequest(message(1025))).toThrow(
      "request has more than 1024 dimensions of an input, which exceeds the maximum allowed number of 1024",
    );
    expect(() => decodeRequest(message(7_000_000))).toThrow(
      "request has more than 1024 dimensions of an input",
    );
  });

  test("may have 65536 fields that the server does not know", () => {
    const message = (count: number) => Buffer.concat([name, Buffer.alloc(2 * count, Buffer.of(15 << 3, 1))]);
    const { decodeRequest } = inferRequestDecoder(models(1));
    expect(decodeRequest(message(65_536)).modelName).toBe("m");
    expect(() => decodeRequest(message(65_537))).toThrow("request has more than 65536 other fields");
    const known = Buffer.alloc(2 * 300_000, Buffer.of((15 << 3) | 2, 0));
    expect(() => decodeRequest(known)).toThrow("request has more than 262144 parts");
  });

  test.each([1, 4096, 4097, 10_000])("become the same tensor with %d strings", (count) => {
    const strings = Array.from({ length: count }, (_, index) => Buffer.from("s".repeat(index % 100)));
    const contents = Buffer.concat(strings.map((string) => field(8, string)));
    const input = [field(1, "x"), field(2, "BYTES"), field(3, Buffer.of(1)), field(5, contents)];
    const decoded = inferRequestDecoder(models(1)).decodeRequest(
      Buffer.concat([name, field(5, Buffer.concat(input))]),
    );
    const x = decodeInputs(decoded, {} as never).get("x")!;
    expect(Buffer.compare(x.bytes, encodeBytes(strings))).toBe(0);
    expect((x.elements as Uint8Array[]).length).toBe(count);
  });

  test("are counted behind a group of unknown fields", () => {
    const group = Buffer.of((15 << 3) | 3, (15 << 3) | 4);
    const message = Buffer.concat([group, many(4097, PARTS.outputs)]);
    expect(() => inferRequestDecoder(models(1)).decodeRequest(message)).toThrow("request has 4097 outputs");
  });

  test("are as many as the decoder finds in any message", () => {
    const { ModelInferRequest } = inference;
    const message = ModelInferRequest.encode({
      modelName: "m",
      parameters: { a: { int64Param: 1 }, b: { doubleParam: 2 } },
      inputs: [{ name: "x", shape: [1, 2], contents: { fp64Contents: [1] } }],
      rawInputContents: [Buffer.alloc(300), Buffer.alloc(0)],
    } as never).finish();
    const seen: number[] = [];
    eachField(message, 0, message.length, (number) => void seen.push(number));
    expect(seen).toEqual([1, 4, 4, 5, 7, 7]);
    for (let length = 0; length < message.length; length++) eachField(message, 0, length, () => {});
  });
});
