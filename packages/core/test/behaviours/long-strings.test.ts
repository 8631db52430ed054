import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { batch, Tensor, Triton } from "@tritonjs/core";
import type { InferenceResponse } from "@tritonjs/core/frontend";
import { encodeBytes } from "@tritonjs/protocol";
import { expect, it, onTestFinished } from "vitest";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { sendRequest } from "../../../../test/support/send-request.js";

/** A clock on which each look takes half a millisecond. It counts the turns of the event loop that were waited for. */
function slowClock() {
  let now = 0;
  const clock = {
    turns: 0,
    now: () => (now += 0.5),
    wallNow: () => now,
    setTimer(delayMs: number, run: () => void) {
      const timer = setTimeout(run, delayMs);
      return { cancel: () => clearTimeout(timer) };
    },
    defer(run: () => void) {
      clock.turns++;
      setImmediate(run);
    },
  };
  return clock;
}

async function turnsFor(count: number) {
  const clock = slowClock();
  const triton = new Triton({ clock });
  onTestFinished(() => triton.close());
  const seen: string[][] = [];
  triton.bind({
    modelName: "m",
    inputs: [{ name: "x", dtype: "BYTES", shape: [-1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: batch(({ x }) => {
      seen.push(x.strings());
      return { y: Int32Array.of(x.size) };
    }),
    config: { batching: false },
  });
  await triton.ready();
  const strings = Array.from({ length: count }, (_, index) => `string ${index}`);
  const x = Tensor.fromBytes("BYTES", [count], encodeBytes(strings.map((one) => Buffer.from(one))));
  clock.turns = 0;
  const response = await new Promise<InferenceResponse>((resolve, reject) => {
    sendRequest(triton.service.model("m", ""), { inputs: new Map([["x", x]]) }, (outcome) => {
      if (outcome instanceof Error) reject(outcome);
      else if (outcome !== undefined) resolve(outcome);
    });
  });
  expect(seen).toEqual([strings]);
  expect([...response.outputs.get("y")!.elements]).toEqual([count]);
  return clock.turns;
}

it("a callback gets a few strings without a wait, and long ones in turns of the event loop", async () => {
  const few = await turnsFor(100);
  const many = await turnsFor(60_000);
  // 29 steps of 2048 strings and half a millisecond: ten in a turn.
  expect(many - few).toBeGreaterThanOrEqual(2);
});

const SMALL_HEAP = `
  import { batch, Tensor, Triton } from "@tritonjs/core";
  import { Exchange } from "@tritonjs/core/frontend";
  const triton = new Triton();
  triton.bind({
    modelName: "m",
    inputs: [{ name: "x", dtype: "BYTES", shape: [-1] }],
    outputs: [{ name: "y", dtype: "BYTES", shape: [-1] }],
    inferFunc: Array.from({ length: 8 }, () => batch(async ({ x }) => {
      await new Promise(setImmediate);
      return { y: x };
    })),
    config: { batching: false },
  });
  await triton.ready();
  const ask = (count) => new Promise((resolve) => {
    const x = Tensor.fromBytes("BYTES", [count], new Uint8Array(4 * count));
    const respond = (outcome, final) => {
      console.log(outcome.code ?? "answered", outcome.message ?? outcome.outputs.get("y").byteLength);
      if (final) resolve();
    };
    const { service } = triton;
    const exchange = new Exchange(service, undefined, service.model("m", ""));
    exchange.send({ inputs: new Map([["x", x]]) }, { respond, refuse: (error) => respond(error, true) });
  });
  await ask(2_000_000);
  await ask(100_000);
  await Promise.all(Array.from({ length: 8 }, () => ask(200_000)));
  await triton.close();
`;

it("strings that take more than half of the heap are refused, and those of several requests wait for each other", async () => {
  const options = ["--max-old-space-size=64", "--input-type=module", "--eval", SMALL_HEAP];
  const { stdout } = await promisify(execFile)(process.execPath, options, { cwd: repositoryRoot });
  const [refused, answered, ...together] = stdout.trim().split("\n");
  expect(refused).toMatch(
    /^INVALID_ARG model 'm', input 'x': expected at most \d+ strings, which take half of the heap of this process, got 2000000/,
  );
  expect(answered).toBe("answered 400000");
  expect(together).toEqual(Array(8).fill("answered 800000"));
});
