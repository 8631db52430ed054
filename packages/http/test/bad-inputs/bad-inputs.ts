import type { OutgoingHttpHeaders } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { sample, Triton } from "@tritonjs/core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type HttpOptions, http } from "../../src/index.js";
import { send } from "../support/send.js";

const DATA_TYPES = [
  "FP32",
  "FP64",
  "FP16",
  "BF16",
  "INT8",
  "INT64",
  "UINT8",
  "UINT64",
  "BOOL",
  "BYTES",
] as const;
/** How much the bad inputs of a file may raise memory use. */
const MAX_GROWTH_BYTES = 48 << 20;

/** A bad request. The path is that of an inference unless given. */
interface BadRequest {
  /** The request body; objects are sent as JSON. */
  readonly body?: string | Uint8Array | object;
  /** Data type of the model, in lower case: each data type has an identity model. */
  readonly model?: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
}

/** Bad requests or their bodies, by name. */
type BadRequests = Readonly<Record<string, BadRequest | string>>;

/** A server of identity models for the tests of a file, and its port. The tests must not raise memory use. */
export function useServer(options: HttpOptions = {}): { port: number } {
  const server = { port: 0 };
  let before = 0;
  const triton = new Triton({ security: { restrictedEndpoints: [] } });
  for (const dtype of DATA_TYPES) {
    triton.bind({
      modelName: dtype.toLowerCase(),
      inputs: [{ name: "IN", dtype, shape: [-1] }],
      outputs: [{ name: "OUT", dtype, shape: [-1] }],
      inferFunc: sample(({ IN }) => ({ OUT: IN })),
    });
  }
  beforeAll(async () => {
    const { addresses } = await triton.serve({
      frontends: [http({ port: 0, maxInputSize: 1 << 20, ...options })],
    });
    server.port = addresses.http!.port;
    before = memoryInUse();
  });
  afterAll(async () => {
    const growth = memoryInUse() - before;
    await triton.close();
    expect(growth).toBeLessThan(MAX_GROWTH_BYTES);
  });
  return server;
}

/**
 * Expects the answer of each request, and that the next good request works.
 *
 * @param answers requests by the status and a part of the text of their answer, such as `400 nothing to be decompressed`
 */
export function expectAnswers(
  server: { port: number },
  answers: Readonly<Record<string, BadRequests>>,
): void {
  it("get the expected answers", async () => {
    for (const [expected, requests] of Object.entries(answers)) {
      const [status, text] = [Number(expected.slice(0, 3)), expected.slice(4)];
      for (const [name, request] of Object.entries(requests)) {
        const {
          body,
          model = "fp32",
          ...rest
        }: BadRequest = typeof request === "string" ? { body: request } : request;
        const bytes = body === undefined || isBytes(body) ? body : JSON.stringify(body);
        const answer = await send(server.port, { path: `/v2/models/${model}/infer`, body: bytes, ...rest });
        expect([answer.status, answer.text], name).toEqual([status, expect.stringContaining(text)]);
        if (status !== 200 && rest.method !== "HEAD")
          expect(JSON.parse(answer.text), name).toEqual({ error: expect.any(String) });
        expect(answer.text, name).not.toBe('{"error":"internal error"}');
      }
    }
    await expectGoodRequestToWork(server.port);
  });
}

/** Expects that a good request works. */
export async function expectGoodRequestToWork(port: number): Promise<void> {
  const answer = await send(port, { path: "/v2/models/fp32/infer", body: input("FP32", [2], [1, 2]) });
  expect(answer.text).toContain('"data":[1.0,2.0]');
}

/** The JSON of a request with one input. */
export function input(datatype: string, shape: unknown, data: unknown): string {
  return JSON.stringify({ inputs: [{ name: "IN", datatype, shape, data }] });
}

function memoryInUse(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function isBytes(body: string | Uint8Array | object): body is string | Uint8Array {
  return typeof body === "string" || body instanceof Uint8Array;
}
