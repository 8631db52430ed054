import { once } from "node:events";
import { request } from "node:http";
import type { Triton } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { expect, it } from "vitest";
import { askDouble, openTriton, serveInThreads } from "./support.js";

/** Binds a model that holds its requests until they are released, and returns how they end. */
function bindHeld(triton: Triton) {
  const held: (() => void)[] = [];
  const aborted: string[] = [];
  triton.bind({
    modelName: "held",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    config: { batching: false },
    inferFunc: [0, 1].map(() => async (_requests: unknown, { signal }: { signal: AbortSignal }) => {
      signal.addEventListener("abort", () => aborted.push(String(signal.reason.message)));
      await new Promise<void>((resolve) => held.push(resolve));
      throw signal.reason;
    }),
  });
  return { held, aborted };
}

function ask(url: string): Promise<number | string> {
  const body = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1], data: [1] }] });
  return new Promise((resolve) => {
    const sent = request(`${url}/v2/models/held/infer`, { method: "POST", agent: false }, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode!));
    });
    sent.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code ?? "error"));
    sent.end(body);
  });
}

it("when a thread dies, its requests are cancelled, the engine goes on, and the thread is started again", async () => {
  const errors: string[] = [];
  const modules: unknown[] = [];
  const logger = {
    takesSubjects: true as const,
    error(text: string, about?: { readonly module?: string }) {
      errors.push(text);
      modules.push(about?.module);
    },
    warn() {},
    info() {},
    debug() {},
  };
  const triton = openTriton({ logger });
  const { held, aborted } = bindHeld(triton);
  const { url, workers } = await serveInThreads(triton, 1);
  const answers = [ask(url), ask(url)];
  await expect.poll(() => held.length).toBe(2);

  await workers[0]!.terminate();
  expect(await Promise.all(answers)).toEqual(["ECONNRESET", "ECONNRESET"]);
  await expect.poll(() => aborted).toEqual(Array(2).fill("the frontend thread of the request has ended"));
  expect(errors).toEqual([expect.stringContaining("frontend thread 1 has ended: exit code 1.")]);
  expect(modules).toEqual(["frontend_threads"]);
  expect(serviceOf(triton).requestMemory.usedBytes).toBe(0);
  expect(await triton.infer("double", { x: [1] })).toBeDefined();

  for (const release of held) release();
  await expect.poll(() => askDouble(url).catch(() => [0])).toEqual([200, expect.any(String)]);
  expect(workers).toHaveLength(2);
  expect(new Set(workers.map(({ threadId }) => threadId)).size).toBe(2);
});

it("when one of two threads dies, the other serves all new connections", async () => {
  const triton = openTriton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
  const { url, workers } = await serveInThreads(triton, 2);
  const exit = once(workers[1]!, "exit");
  await workers[1]!.terminate();
  await exit;
  for (let i = 0; i < 10; i++) expect((await askDouble(url))[0]).toBe(200);
});
