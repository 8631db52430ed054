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
/** How much a group of bad inputs may raise memory use. */
const MAX_GROWTH_BYTES = 48 << 20;

/** One bad input, and the answer that the server must give. */
export interface BadInput {
  /** The request body; objects are sent as JSON. */
  readonly body?: string | Uint8Array | object;
  /** Data type of the model, in lower case: each data type has an identity model. */
  readonly model?: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly status: number;
  /** Part of the text of the answer. */
  readonly text?: string | RegExp;
}

/** A server of identity models for a group of tests, and its port. */
export function useServer(options: HttpOptions = {}): { port: number } {
  const server = { port: 0 };
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
  });
  afterAll(() => triton.close());
  return server;
}

/** Expects the given answer for each input, and that the next good request works. */
export function expectAnswers(server: { port: number }, inputs: Readonly<Record<string, BadInput>>): void {
  it.each(Object.entries(inputs))("gives the expected answer to %s", async (_name, input) => {
    const { body, model = "fp32", path = `/v2/models/${model}/infer`, status, text = "", ...rest } = input;
    const bytes = body === undefined || isBytes(body) ? body : JSON.stringify(body);
    const answer = await send(server.port, { path, body: bytes, ...rest });
    expect([answer.status, answer.text]).toEqual([status, answer.text]);
    if (status !== 200 && rest.method !== "HEAD")
      expect(JSON.parse(answer.text)).toEqual({ error: expect.any(String) });
    expect(answer.text).not.toBe('{"error":"internal error"}');
    if (typeof text === "string") expect(answer.text).toContain(text);
    else expect(answer.text).toMatch(text);
    await expectGoodRequestToWork(server.port);
  });
  expectBoundedMemory();
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

function expectBoundedMemory(): void {
  let before = 0;
  beforeAll(() => {
    before = memoryInUse();
  });
  it("all of them together do not raise memory use", () => {
    expect(memoryInUse() - before).toBeLessThan(MAX_GROWTH_BYTES);
  });
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
