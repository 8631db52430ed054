import { describe, expect, it } from "vitest";
import { RESCHEDULE } from "../../../src/callback/infer-func.js";
import { SequenceBench } from "../../support/sequence-bench.js";

/** Each request runs as often as the number in its id says. */
function bench(more: object = {}): SequenceBench {
  const subject = new SequenceBench({ sequence: { iterative: true, ...more } });
  const runs = new Map<string, number>();
  subject.answer = ({ id }) => {
    const count = (runs.get(id) ?? 0) + 1;
    runs.set(id, count);
    return count < Number(id.slice(1)) ? RESCHEDULE : new Map();
  };
  return subject;
}

const noId = { correlationId: undefined };

describe.each(["direct", "oldest"] as const)("iterative sequences under the %s strategy", (strategy) => {
  it("get an id of their own, and run until the model has finished with them", async () => {
    const subject = bench({ strategy });
    const request = subject.send("A3", noId);
    await subject.clock.advance(100);
    expect(subject.batches).toEqual(["A3", "A3", "A3"]);
    expect(subject.outcomes).toEqual(["A3: response"]);
    expect([request.correlationId, subject.evictions, subject.deadlines.size]).toEqual([1n, [], 0]);
    expect(subject.statistics).toMatchObject({ inferenceCount: 3, success: { count: 3 }, pendingCount: -1 });
  });

  it("admit new requests between two runs", async () => {
    const subject = bench({ strategy });
    subject.send("A4", noId);
    await subject.clock.advance(15);
    subject.send("B2", noId);
    await subject.clock.advance(100);
    const batches = subject.batches.map((batch) => batch.split(" ").sort().join(" "));
    expect(batches).toEqual(["A4", "A4", "A4 B2", "A4 B2"]);
  });

  it("end as idle when one run takes longer than the limit, so that the next one is refused", async () => {
    const subject = bench({ strategy, maxSequenceIdleMicroseconds: 5000 });
    subject.send("A3", noId);
    subject.send("B1", noId);
    await subject.clock.advance(100);
    expect(subject.outcomes).toContain("B1: response");
    expect(subject.outcomes).toContainEqual(expect.stringMatching(/^A3: .*must specify the START flag/));
  });

  it("end between two runs when they are cancelled", async () => {
    const subject = bench({ strategy });
    const request = subject.send("A9", noId);
    await subject.clock.advance(15);
    request.cancel();
    await subject.clock.advance(100);
    expect(subject.batches).toEqual(["A9", "A9"]);
    subject.send("B1", noId);
    await subject.clock.advance(20);
    expect(subject.batches).toEqual(["A9", "A9", "B1"]);
  });

  it("finish when the scheduler stops", async () => {
    const subject = bench({ strategy });
    subject.send("A3", noId);
    await subject.clock.advance(5);
    subject.scheduler.stop();
    await subject.clock.advance(100);
    expect(subject.outcomes).toEqual(["A3: response"]);
  });
});

it("a model without iterative sequences cannot ask for another run", async () => {
  const subject = new SequenceBench({ sequence: {} });
  subject.answer = () => RESCHEDULE;
  await subject.sendEach("A1^");
  expect(subject.outcomes).toEqual([
    "A1: INTERNAL model 'm' returned RESCHEDULE, which needs sequence batching with iterative sequences",
  ]);
});
