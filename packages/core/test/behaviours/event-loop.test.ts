import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { batch, Tensor, Triton } from "@tritonjs/core";
import { encodeBytes } from "@tritonjs/protocol";
import { type InferenceResponse, serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { openTriton } from "../../../../test/e2e/support/open-triton.js";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomesOf } from "../../../../test/support/outcome.js";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { sendRequest } from "../../../../test/support/send-request.js";

/** Computes for a millisecond. */
function compute(): void {
  const end = performance.now() + 1;
  while (performance.now() < end);
}

const tensors = {
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
} as const;

/** Models whose requests compute for a millisecond each, and how they are called. */
const bindings = {
  "a callback": (triton: Triton) => {
    const inferFunc = batch<typeof tensors.inputs, typeof tensors.outputs>(({ x }) => {
      compute();
      return { y: x };
    });
    const model = triton.bind({ modelName: "m", ...tensors, inferFunc, config: { maxBatchSize: 1 } });
    return { model, call: (i: number) => model.inferSample({ x: [i] }) };
  },
  "a callback that awaits before it computes": (triton: Triton) => {
    const inferFunc = batch<typeof tensors.inputs, typeof tensors.outputs>(async ({ x }) => {
      await null;
      compute();
      return { y: x };
    });
    const model = triton.bind({ modelName: "m", ...tensors, inferFunc, config: { maxBatchSize: 1 } });
    return { model, call: (i: number) => model.inferSample({ x: [i] }) };
  },
  "a generator": (triton: Triton) => {
    const inferFunc = batch<typeof tensors.inputs, typeof tensors.outputs>(async function* ({ x }) {
      compute();
      yield { y: x };
    });
    const config = { maxBatchSize: 1, decoupled: true } as const;
    const model = triton.bind({ modelName: "m", ...tensors, inferFunc, config });
    return {
      model,
      call: async (i: number) => {
        for await (const _response of model.stream({ x: [[i]] }));
      },
    };
  },
};

const ways = [
  ["one after the other", 1],
  ["together", 40],
] as const;

const cases = Object.entries(bindings).flatMap(([kind, bind]) =>
  ways.map(([how, together]) => [kind, how, bind, together] as const),
);

describe("event loop", () => {
  it.each(cases)(
    "40 requests of %s, %s, leave turns to the rest of the program",
    async (_kind, _how, bind, together) => {
      const { model, call } = bind(openTriton());
      await model.ready();
      let turns = 0;
      let isOver = false;
      const count = (): void => {
        turns++;
        if (!isOver) setImmediate(count);
      };
      setImmediate(count);
      const client = async () => {
        for (let i = 0; i < 40 / together; i++) await call(i);
      };
      await Promise.all(Array.from({ length: together }, client));
      isOver = true;
      // A turn after each two milliseconds of work.
      expect(turns).toBeGreaterThanOrEqual(19);
    },
  );
});

/** A clock whose time passes while a callback blocks the event loop, so that no timer fires. */
class BlockableClock extends VirtualClock {
  #blockedMs = 0;

  override now(): number {
    return super.now() + this.#blockedMs;
  }

  block(ms: number): void {
    this.#blockedMs += ms;
  }
}

const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;

function blockedTriton() {
  const clock = new BlockableClock();
  const warnings: string[] = [];
  const logger = { error() {}, warn: (text: string) => warnings.push(text), info() {}, debug() {} };
  const triton = new Triton({ clock, logger });
  onTestFinished(() => triton.close());
  return { clock, triton, warnings };
}

describe("blocking callbacks", () => {
  it("answers calls whose time limit passed while a callback blocked with the time-out", async () => {
    const { clock, triton, warnings } = blockedTriton();
    let runs = 0;
    const handle = triton.bind({
      ...specs,
      config: { maxBatchSize: 1 },
      inferFunc: batch(({ x }) => {
        runs++;
        clock.block(3000);
        return { y: x };
      }),
    });
    await handle.ready();
    const outcomes = outcomesOf([1, 2].map((value) => handle.infer({ x: [[value]] }, { timeoutMs: 500 })));
    await clock.settle();
    expect(await outcomes).toEqual(Array(2).fill("UNAVAILABLE Request timeout expired"));
    expect(runs).toBe(1);
    expect(warnings).toEqual([expect.stringMatching(/^model 'm' held the event loop for 3000 ms: /)]);
    expect(handle.statistics().inferenceStats.fail.count).toBe(2);
  });

  it("warns once of a model that blocks, also between the steps of a generator", async () => {
    const { clock, triton, warnings } = blockedTriton();
    const handle = triton.bind({
      ...specs,
      config: { decoupled: true },
      inferFunc: batch(function* ({ x }) {
        yield { y: x };
        clock.block(1500);
        yield { y: x };
      }),
    });
    for (let i = 0; i < 2; i++) {
      const answers: unknown[] = [];
      const reading = (async () => {
        for await (const answer of handle.stream({ x: [[i]] })) answers.push(answer);
      })();
      await clock.settle();
      await reading;
      expect(answers).toHaveLength(2);
    }
    expect(warnings).toEqual([expect.stringMatching(/^model 'm' held the event loop for 1500 ms: /)]);
  });

  it("does not warn of a callback that waits", async () => {
    const { clock, triton, warnings } = blockedTriton();
    const handle = triton.bind({
      ...specs,
      inferFunc: batch(async ({ x }) => {
        await new Promise<void>((resolve) => clock.setTimer(1000, resolve));
        return { y: x };
      }),
    });
    await handle.ready();
    const answer = echo(handle, 1);
    await clock.advance(1000);
    expect(await answer).toBe(1);
    expect(warnings).toEqual([]);
  });
});

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
    sendRequest(serviceOf(triton).model("m", ""), { inputs: new Map([["x", x]]) }, (outcome) => {
      if (outcome instanceof Error) reject(outcome);
      else if (outcome !== undefined) resolve(outcome);
    });
  });
  expect(seen).toEqual([strings]);
  expect([...response.outputs.get("y")!.elements]).toEqual([count]);
  return clock.turns;
}

const SMALL_HEAP = `
  import { batch, Tensor, Triton } from "@tritonjs/core";
  import { Exchange, serviceOf } from "@tritonjs/server";
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
    const service = serviceOf(triton);
    const exchange = new Exchange(service, undefined, service.model("m", ""));
    exchange.send({ inputs: new Map([["x", x]]) }, { respond, refuse: (error) => respond(error, true) });
  });
  await ask(2_000_000);
  await ask(100_000);
  await Promise.all(Array.from({ length: 8 }, () => ask(200_000)));
  await triton.close();
`;

describe("long strings", () => {
  it("a callback gets a few strings without a wait, and long ones in turns of the event loop", async () => {
    const few = await turnsFor(100);
    const many = await turnsFor(60_000);
    // 29 steps of 2048 strings and half a millisecond: ten in a turn.
    expect(many - few).toBeGreaterThanOrEqual(2);
  });

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
});
