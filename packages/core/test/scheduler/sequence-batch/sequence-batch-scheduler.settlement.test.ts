import { TritonError } from "@tritonjs/protocol";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { InferenceRequest } from "../../../src/request/inference-request.js";
import { SequenceBench } from "../../support/sequence-bench.js";

type Step =
  | {
      readonly do: "send";
      readonly id: number;
      readonly start: boolean;
      readonly end: boolean;
      readonly timeout: number;
    }
  | { readonly do: "cancel"; readonly which: number }
  | { readonly do: "advance"; readonly ms: number }
  | { readonly do: "break" };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 30,
      arbitrary: fc.record({
        do: fc.constant("send" as const),
        id: fc.integer({ min: 1, max: 6 }),
        start: fc.boolean(),
        end: fc.boolean(),
        timeout: fc.constantFrom(0, 0, 0, 15_000),
      }),
    },
    { weight: 5, arbitrary: fc.record({ do: fc.constant("cancel" as const), which: fc.nat(40) }) },
    { weight: 15, arbitrary: fc.record({ do: fc.constant("advance" as const), ms: fc.nat(30) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("break" as const) }) },
  ),
  { maxLength: 60 },
);

it.each(["direct", "oldest"] as const)(
  "under the %s strategy, each request settles once under random events, and no state is left",
  async (strategy) => {
    await fc.assert(
      fc.asyncProperty(
        steps,
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 2 }),
        async (all, size, count) => {
          const sequence = { strategy, maxSequenceIdleMicroseconds: 60_000 };
          const bench = new SequenceBench({ maxBatchSize: size, sequence }, count);
          const accepted: InferenceRequest[] = [];
          const answers = new Map<string, number>();
          for (const [i, step] of all.entries()) {
            if (step.do === "advance") await bench.clock.advance(step.ms);
            else if (step.do === "cancel") accepted[step.which]?.cancel();
            else if (step.do === "break") {
              const { executor } = bench.instances.instances[0]!;
              executor.onHealth?.(false);
              await bench.clock.advance(5);
              executor.onHealth?.(true);
            } else {
              const id = `r${i}`;
              try {
                accepted.push(
                  bench.send(id, {
                    correlationId: BigInt(step.id),
                    sequenceStart: step.start,
                    sequenceEnd: step.end,
                    queueTimeoutMicroseconds: step.timeout,
                    onResponse: () => answers.set(id, (answers.get(id) ?? 0) + 1),
                  }),
                );
              } catch (error) {
                expect(TritonError.is(error)).toBe(true);
              }
            }
          }
          await bench.clock.advance(5000);
          expect([...answers]).toEqual(expect.arrayContaining(accepted.map(({ id }) => [id, 1])));
          expect(answers.size).toBe(accepted.length);
          expect([bench.deadlines.size, bench.scheduler.queuedCount]).toEqual([0, 0]);
          // Requests of one id reached the instance in order of arrival.
          const order = bench.seen.filter(({ ready }) => ready);
          for (let id = 1n; id <= 6n; id++) {
            const places = order
              .filter((one) => one.correlationId === id)
              .map(({ id: name }) => Number(name.slice(1)));
            const starts = order.filter((one) => one.correlationId === id && one.sequenceStart).length;
            if (starts <= 1) expect(places).toEqual([...places].sort((a, b) => a - b));
          }
        },
      ),
      { numRuns: 150 },
    );
  },
);
