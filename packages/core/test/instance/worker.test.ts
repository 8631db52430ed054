import { Worker } from "node:worker_threads";
import { Tensor, TritonError } from "@tritonjs/protocol";
import { describe, expect, it, test } from "vitest";
import { VirtualClock } from "../../src/system/clock.js";
import {
  BatchMemory,
  type FromWorker,
  packError,
  packTensors,
  unpackError,
  unpackTensors,
} from "../../src/worker/messages.js";
import { CallsToModels } from "../../src/worker/model-calls.js";
import { ThreadEnding } from "../../src/worker/native-calls.js";
import { SpareThreads } from "../../src/worker/open-worker.js";
import { bits, fp32 } from "../support/tensors.js";

const KIB = 1024;

const MIB = 1024 * KIB;

describe("the memory of batches", () => {
  it("gives a released buffer to inputs of a similar size, and the best one", () => {
    const memory = new BatchMemory();
    const sizes = [4 * MIB, 1 * MIB, 2 * MIB];
    const [four, one, two] = sizes.map((size) => memory.allocate(size).buffer);
    memory.release([four!, one!, two!]);
    expect(memory.allocate(1.5 * MIB)).toMatchObject({ buffer: two, byteOffset: 0, byteLength: 1.5 * MIB });
    expect(memory.allocate(900 * KIB).buffer).toBe(one);
    expect(memory.allocate(900 * KIB).buffer).not.toBe(four);
    expect(memory.allocate(2 * MIB).buffer).toBe(four);
  });

  it("gives a buffer to one batch at a time", () => {
    const memory = new BatchMemory();
    memory.release([memory.allocate(MIB).buffer]);
    expect(memory.allocate(MIB).buffer).not.toBe(memory.allocate(MIB).buffer);
  });

  it("does not keep small buffers", () => {
    const memory = new BatchMemory();
    const { buffer } = memory.allocate(4 * KIB);
    memory.release([buffer]);
    expect(memory.allocate(4 * KIB).buffer).not.toBe(buffer);
  });

  it("keeps the last eight buffers, and 64 MiB", () => {
    const memory = new BatchMemory();
    const nine = Array.from({ length: 9 }, () => memory.allocate(MIB).buffer);
    memory.release(nine);
    const given = nine.map(() => memory.allocate(MIB).buffer);
    expect(nine.filter((buffer) => given.includes(buffer))).toEqual(nine.slice(1));
    const large = Array.from({ length: 3 }, () => memory.allocate(30 * MIB).buffer);
    memory.release(large);
    const again = large.map(() => memory.allocate(30 * MIB).buffer);
    expect(large.filter((buffer) => again.includes(buffer))).toEqual(large.slice(1));
  });
});

const pack = (tensor: Tensor, owned: boolean) => {
  const transfer: ArrayBuffer[] = [];
  const packed = packTensors(new Map([["x", tensor]]), transfer, owned);
  return { packed, transfer };
};

describe("tensors packed for a worker", () => {
  it("unpack to equal tensors", () => {
    for (const tensor of [fp32([2, 1], [1, 2]), Tensor.fromElements("BYTES", [1], [Uint8Array.of(1, 2)])]) {
      const { packed } = pack(tensor, false);
      expect(bits(unpackTensors(packed).get("x")!)).toEqual(bits(tensor));
    }
  });

  it("transfer their memory only when they own it alone", () => {
    const owner = fp32([2], [1, 2]);
    expect(pack(owner, true).transfer).toEqual([owner.bytes.buffer]);
    const part = Tensor.fromBytes("FP32", [1], owner.bytes.subarray(0, 4));
    expect(pack(part, true).transfer).not.toContain(owner.bytes.buffer);
    expect(pack(owner, false).transfer).not.toContain(owner.bytes.buffer);
  });

  it("never transfer the pool under a small Buffer or its neighbours", () => {
    const buffer = Buffer.from([1, 2, 3, 4]);
    const { packed, transfer } = pack(Tensor.fromBytes("UINT8", [4], buffer), false);
    expect(transfer).not.toContain(buffer.buffer);
    expect(transfer.map((memory) => memory.byteLength)).toEqual([4]);
    expect([...packed[0]!.bytes]).toEqual([1, 2, 3, 4]);
  });

  it("transfer shared memory once", () => {
    const shared = fp32([2], [1, 2]);
    const transfer: ArrayBuffer[] = [];
    packTensors(
      new Map([
        ["a", shared],
        ["b", shared.reshaped([2, 1])],
      ]),
      transfer,
      true,
    );
    expect(transfer).toHaveLength(1);
  });
});

describe("errors packed by a worker", () => {
  it("keep code and message", () => {
    const error = unpackError(packError(new TritonError("UNAVAILABLE", "later")));
    expect(error).toMatchObject({ code: "UNAVAILABLE", message: "later" });
    expect(unpackError(packError(new TypeError("oops")))).toMatchObject({
      code: "INTERNAL",
      message: "oops",
    });
  });
});

describe("a call of another model from a worker", () => {
  it.each(["before it is sent", "while it runs"])(
    "rejects with an AbortError when it is aborted %s",
    async (when) => {
      const sent: FromWorker[] = [];
      const calls = new CallsToModels((message) => sent.push(message));
      const controller = new AbortController();
      const reason = new Error("enough");
      if (when === "before it is sent") controller.abort(reason);
      const answer = calls.of(0).infer("m", {}, { signal: controller.signal });
      controller.abort(reason);
      await expect(answer).rejects.toMatchObject({ name: "AbortError", code: "CANCELLED", cause: reason });
      expect(sent.map(({ type }) => type)).toEqual(when === "before it is sent" ? [] : ["call", "end"]);
    },
  );
});

/** Place of the shared state that says whether the thread is in a native call. */
const CALLS = 0;

describe("native calls", () => {
  test("a thread that is outside of native calls ends at once", () => {
    const ending = new ThreadEnding();
    let ended = 0;
    ending.begin(() => ended++);
    expect(ended).toBe(1);
    ending.over();
  });

  test("a thread in a native call ends after the call", async () => {
    const ending = new ThreadEnding();
    Atomics.store(ending.state, CALLS, 1);
    let isInCall = true;
    const ended = new Promise<boolean>((resolve) => ending.begin(() => resolve(isInCall)));
    await new Promise(setImmediate);
    isInCall = false;
    Atomics.store(ending.state, CALLS, 0);
    expect(await ended).toBe(false);
    ending.over();
  });

  test("an exiting process waits for a thread that is in a native call", async () => {
    const ending = new ThreadEnding();
    Atomics.store(ending.state, CALLS, 1);
    const thread = new Worker(
      `const { workerData } = require("node:worker_threads");
    while (Atomics.load(workerData, 1) === 0);
    Atomics.store(workerData, 0, 0);
    Atomics.notify(workerData, 0);`,
      { eval: true, workerData: ending.state },
    );
    ending.wait(60_000);
    expect(Atomics.load(ending.state, CALLS)).toBe(0);
    await thread.terminate();
    ending.over();
  });

  test("a thread that ended in a native call is not waited for", async () => {
    const ending = new ThreadEnding();
    Atomics.store(ending.state, CALLS, 1);
    const ended = new Promise<void>((resolve) => ending.begin(resolve));
    ending.over();
    await ended;
  });
});

const retired: string[] = [];

const thread = (name: string) => ({ name, retire: () => void retired.push(name) });

function spareThreads() {
  retired.length = 0;
  const clock = new VirtualClock();
  return { clock, spares: new SpareThreads<ReturnType<typeof thread>>(clock) };
}

describe("spare threads", () => {
  it("the thread of the model closed last is taken first, and one started ahead last", () => {
    const { spares } = spareThreads();
    for (const name of ["a", "b"]) spares.keep(thread(name));
    spares.add(thread("new"));
    expect([1, 2, 3, 4].map(() => spares.take()?.name)).toEqual(["b", "a", "new", undefined]);
  });

  it("the oldest spare threads end when there are too many", () => {
    const { spares } = spareThreads();
    for (const name of ["a", "b", "c", "d", "e", "f"]) spares.keep(thread(name));
    expect([spares.count, retired]).toEqual([4, ["a", "b"]]);
  });

  it("a spare thread ends when no model takes it within ten seconds", async () => {
    const { clock, spares } = spareThreads();
    spares.keep(thread("a"));
    await clock.advance(9_000);
    spares.keep(thread("b"));
    await clock.advance(9_000);
    expect(retired).toEqual([]);
    await clock.advance(1_000);
    expect([spares.count, retired]).toEqual([0, ["a", "b"]]);
  });

  it("a forgotten thread is not taken", () => {
    const { spares } = spareThreads();
    const gone = thread("gone");
    spares.keep(gone);
    spares.forget(gone);
    expect(spares.take()).toBeUndefined();
  });

  it("threads are started ahead when loads follow each other within ten seconds without overlapping", async () => {
    const { clock, spares } = spareThreads();
    spares.loadBegins();
    spares.loadBegins();
    expect([spares.loadEnds(), spares.loadEnds()]).toEqual([0, 0]);
    await clock.advance(5_000);
    spares.loadBegins();
    expect(spares.loadEnds()).toBe(2);
    spares.keep(thread("a"));
    spares.loadBegins();
    expect(spares.loadEnds()).toBe(1);
    await clock.advance(11_000);
    spares.loadBegins();
    expect(spares.loadEnds()).toBe(0);
  });
});
