import { Tensor, Triton, TritonError } from "@tritonjs/core";
import type { RequestHandle } from "@tritonjs/core/internal";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, it } from "vitest";
import { echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { SeededRandom } from "../../../../test/support/seeded-random.js";
import { sendRequest } from "../../../../test/support/send-request.js";

/** Records how each request ended: with one final answer, or with one rejection. */
class Settlements {
  readonly ends: string[][] = [];

  /** Sends one request and records its outcome. Undefined when it was rejected: then no model has it. */
  send(triton: Triton, value: number, rows: number, deadline?: number): RequestHandle | undefined {
    const ends: string[] = [];
    this.ends.push(ends);
    const inputs = new Map([
      ["x", Tensor.fromElements("INT32", [rows, 1], new Int32Array(rows).fill(value))],
    ]);
    try {
      return sendRequest(serviceOf(triton).model("m", ""), { inputs, deadline }, (outcome, final) => {
        if (!final) return;
        if (TritonError.is(outcome)) ends.push(outcome.code);
        else ends.push(outcome!.outputs.get("y")!.elements[0] === value ? "answered" : "wrong answer");
      });
    } catch (error) {
      ends.push(`refused ${TritonError.from(error).code}`);
      return undefined;
    }
  }

  /** Number of requests by outcome. Fails when one did not end exactly once. */
  tally(): Record<string, number> {
    const tally: Record<string, number> = {};
    for (const [i, ends] of this.ends.entries()) {
      expect(ends, `request ${i}`).toHaveLength(1);
      tally[ends[0]!] = (tally[ends[0]!] ?? 0) + 1;
    }
    return tally;
  }
}

const KNOWN_ENDS = /^(answered|CANCELLED|UNAVAILABLE|INTERNAL|UNSUPPORTED|refused UNAVAILABLE)$/;

describe("under answers, errors, cancellations, timeouts and close, every request settles once", () => {
  it.each([1, 2, 3, 4])("with callbacks on this thread, seed %i", async (seed) => {
    const random = new SeededRandom(seed);
    const clock = new VirtualClock();
    const triton = new Triton({ clock, exitTimeoutSecs: 0.02 });
    const handle = triton.bind({
      modelName: "m",
      inputs: echoInputs,
      outputs: echoOutputs,
      config: {
        maxBatchSize: 8,
        instanceGroup: { count: 3 },
        batcher: {
          maxQueueDelayMicroseconds: random.below(3) * 1000,
          preferredBatchSize: [4],
          preserveOrdering: seed % 2 === 0,
        },
      },
      inferFunc: async (requests) => {
        if (random.chance(0.01)) await new Promise<never>(() => {});
        await new Promise<void>((resolve) => clock.setTimer(random.below(5), resolve));
        if (random.chance(0.1)) throw new Error("the batch broke");
        return requests.map(({ inputs }) =>
          random.chance(0.05) ? new TritonError("UNSUPPORTED", "not this one") : { y: inputs.x },
        );
      },
    });
    await handle.ready();
    const settlements = new Settlements();
    const open: RequestHandle[] = [];
    let closed: Promise<void> | undefined;
    for (let step = 0; step < 400; step++) {
      for (let i = random.below(6); i > 0; i--) {
        const deadline = random.chance(0.2) ? clock.now() + 1 + random.below(10) : undefined;
        const request = settlements.send(triton, settlements.ends.length, 1 + random.below(4), deadline);
        if (request !== undefined) open.push(request);
      }
      for (let i = random.below(3); i > 0; i--) open[random.below(open.length)]?.cancel();
      if (step === 380) closed = triton.close();
      if (random.chance(0.5)) await clock.advance(random.below(4));
    }
    await clock.advance(1000);
    await closed;
    const tally = settlements.tally();
    for (const end of Object.keys(tally)) expect(end).toMatch(KNOWN_ENDS);
    for (const end of [
      "answered",
      "CANCELLED",
      "UNAVAILABLE",
      "INTERNAL",
      "UNSUPPORTED",
      "refused UNAVAILABLE",
    ]) {
      expect(tally[end], end).toBeGreaterThan(0);
    }
    const { success, fail } = handle.statistics().inferenceStats;
    expect(success.count).toBe(tally.answered);
    expect(success.count + fail.count + tally["refused UNAVAILABLE"]!).toBe(settlements.ends.length);
  });

  it.each([
    ["worker", 1],
    ["worker", 2],
    ["process", 3],
    ["process", 4],
  ] as const)("with instances in a %s that crashes, seed %i", async (isolation, seed) => {
    const random = new SeededRandom(seed);
    const triton = new Triton({ exitTimeoutSecs: 0 });
    const handle = triton.bind({
      modelName: "m",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: new URL("./fixtures/ends-on-demand.mjs", import.meta.url),
      config: { maxBatchSize: 4, instanceGroup: { count: 2, isolation } },
    });
    await handle.ready();
    const settlements = new Settlements();
    const open: RequestHandle[] = [];
    const crashes = new Map([
      [3, -1],
      [9, -2],
      [15, -3],
    ]);
    for (let step = 0; step < 24; step++) {
      for (let i = 0; i < 10; i++) {
        const request = settlements.send(triton, 1 + open.length, 1 + random.below(3));
        if (request !== undefined) open.push(request);
      }
      const crash = crashes.get(step);
      if (crash !== undefined) settlements.send(triton, crash, 1);
      for (let i = random.below(4); i > 0; i--) open[random.below(open.length)]?.cancel();
      await triton.infer("m", { x: [[0]] }).catch(() => {});
    }
    for (let i = 0; i < 40; i++) settlements.send(triton, 1, 1);
    await triton.close();
    settlements.send(triton, 1, 1);
    const tally = settlements.tally();
    for (const end of Object.keys(tally)) expect(end).toMatch(KNOWN_ENDS);
    for (const end of ["answered", "INTERNAL", "refused UNAVAILABLE"]) {
      expect(tally[end], end).toBeGreaterThan(0);
    }
  });
});
