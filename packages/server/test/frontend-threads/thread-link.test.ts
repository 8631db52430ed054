import { MessageChannel } from "node:worker_threads";
import { InferenceRequest } from "@tritonjs/core/internal/server";
import { NO_PARAMETERS, Tensor, TritonError } from "@tritonjs/protocol";
import type { InferenceResponse, InferInit } from "@tritonjs/server";
import { describe, expect, it } from "vitest";
import { copyScalars, NO_SEQUENCE } from "../../../core/src/request-info.js";
import { IncomingFrame, OutgoingFrame } from "../../src/frontend-threads/frames.js";
import {
  RESPONSE,
  ReceivedRequest,
  RequestSlots,
  readOutcome,
  readRequestKey,
  readTensorMap,
  writeRequest,
  writeResponse,
  writeTensorMap,
} from "../../src/frontend-threads/request-frames.js";
import { createRing, MAX_FRAME_BYTES, RingReader, RingWriter } from "../../src/frontend-threads/ring.js";
import { ThreadLink } from "../../src/frontend-threads/thread-link.js";
import { freeWhenSent } from "../../src/service/request-memory.js";

/** Passes a closed frame to the other side: its bytes are copied, and memory that is handed over is moved. */
function pass(frame: OutgoingFrame): IncomingFrame {
  const bytes = new Uint8Array(frame.size);
  let at = 0;
  for (const part of frame.parts()) {
    bytes.set(part, at);
    at = (at + part.length + 7) & -8;
  }
  const moved = structuredClone(frame.moved, { transfer: frame.moved });
  const incoming = new IncomingFrame(bytes.buffer, () => moved);
  incoming.open(0);
  return incoming;
}

const config = { input: [{ name: "x" }, { name: "ids" }], output: [{ name: "y" }] } as never;

const frame = new OutgoingFrame();

function sent(init: InferInit, latest = false) {
  writeRequest(frame, 5, { key: 17, latest, config }, new InferenceRequest("m", init), undefined);
  const incoming = pass(frame);
  return {
    number: incoming.number,
    target: readRequestKey(incoming),
    request: contentOf(new ReceivedRequest(incoming, { name: "m", config })),
  };
}

/** A request without the state of its processing. */
function contentOf(request: ReceivedRequest) {
  const { id, parameters, requestedOutputs, inputs, trace, arrival } = request;
  const scalars = { ...NO_SCALARS };
  copyScalars(request, scalars);
  return { id, parameters, requestedOutputs, inputs, trace, arrival, ...scalars };
}

const NO_SCALARS = { priority: 0, queueTimeoutMicroseconds: 0, ...NO_SEQUENCE };

const x = () => Tensor.fromElements("FP32", [1, 3], Float32Array.of(1, 2, 3));

describe("a request that goes to the engine", () => {
  it("keeps its number, its model version and its tensors", () => {
    const { number, target, request } = sent({ inputs: new Map([["x", x()]]) }, true);
    expect([number, target]).toEqual([5, { key: 17, latest: true }]);
    expect(
      [...request.inputs].map(([name, { datatype, shape, elements }]) => [name, datatype, shape, elements]),
    ).toEqual([["x", "FP32", [1, 3], Float32Array.of(1, 2, 3)]]);
  });

  it("has the defaults for everything that the client left out", () => {
    const { request } = sent({ inputs: new Map() });
    expect({ ...request }).toEqual({
      id: "",
      parameters: NO_PARAMETERS,
      requestedOutputs: [],
      correlationId: undefined,
      priority: 0,
      queueTimeoutMicroseconds: 0,
      sequenceStart: false,
      sequenceEnd: false,
      inputs: new Map(),
      trace: undefined,
      arrival: undefined,
    });
  });

  it("keeps ids, parameters, limits, outputs and sequences", () => {
    const init = {
      inputs: new Map(),
      id: "ünïque-7 \u{1f600}",
      parameters: { text: "ä", whole: 7, part: 0.1, big: 2n ** 60n, on: true, off: false },
      requestedOutputs: ["y", "unknown"],
      correlationId: 2n ** 63n,
      priority: 3,
      queueTimeoutMicroseconds: 2 ** 40,
      sequenceStart: true,
      sequenceEnd: true,
    };
    const { inputs: _, trace: _trace, arrival: _arrival, ...request } = sent(init).request;
    expect(request).toEqual({
      ...init,
      inputs: undefined,
      parameters: Object.assign(Object.create(null), init.parameters),
    });
    expect(sent({ inputs: new Map(), correlationId: "seq-1" }).request.correlationId).toBe("seq-1");
  });

  it("keeps what validation will refuse: unknown data types, names and dimensions of 64 bits", () => {
    const odd = Tensor.fromBytes("<invalid>" as never, [0, 2n ** 63n - 1n, -1] as never, new Uint8Array(4));
    const [[name, tensor] = []] = [...sent({ inputs: new Map([["nope", odd]]) }).request.inputs];
    expect([name, tensor?.datatype, tensor?.shape]).toEqual(["nope", "<invalid>", [0, 2n ** 63n - 1n, -1]]);
  });

  it("hands the memory of a large tensor over, and copies small tensors of the same memory", () => {
    const memory = new Uint8Array(140_000);
    memory.fill(7, 0, 70_000);
    memory.fill(9, 70_000);
    const large = Tensor.fromBytes("UINT8", [1, 70_000], memory.subarray(0, 70_000));
    const small = Tensor.fromBytes("UINT8", [1, 16], memory.subarray(70_000, 70_016));
    const { inputs } = sent({
      inputs: new Map([
        ["x", large],
        ["ids", small],
      ]),
    }).request;
    expect(memory.byteLength).toBe(0);
    expect(Buffer.compare(inputs.get("x")!.bytes, new Uint8Array(70_000).fill(7))).toBe(0);
    expect(inputs.get("ids")?.bytes).toEqual(new Uint8Array(16).fill(9));
  });
});

describe("request slots", () => {
  it("a slot is used again under another number", () => {
    const slots = new RequestSlots<string>();
    const first = slots.add("a");
    slots.delete(first);
    const second = slots.add("b");
    expect(second).not.toBe(first);
    expect([slots.get(first), slots.get(second)]).toEqual([undefined, "b"]);
    slots.delete(first);
    expect(slots.values()).toEqual(["b"]);
  });

  it("the other end keeps a request under the number that it was given", () => {
    const [here, there] = [new RequestSlots<number>(), new RequestSlots<number>()];
    const numbers = Array.from({ length: 100 }, (_, i) => here.add(i));
    for (const [i, number] of numbers.entries()) there.set(number, i);
    expect(numbers.map((number) => there.get(number))).toEqual(numbers.map((_, i) => i));
    for (const number of numbers) there.delete(number);
    expect(there.values()).toEqual([]);
  });

  it("the other end does not count the slots that become free, which only the first end uses again", () => {
    const slots = new RequestSlots<string>();
    const number = 1 << 20;
    slots.set(number, "a");
    slots.delete(number);
    slots.delete(number);
    const [first, second] = [slots.add("b"), slots.add("c")];
    expect([first & 1, second & 3]).toEqual([1, 2]);
  });
});

const request = { id: "a", modelName: "m", modelVersion: "1", config: { output: [{ name: "y" }] } as never };

function received(outcome: InferenceResponse | TritonError | undefined, final = true, refused = false) {
  writeResponse(frame, 3, request, outcome, final, refused);
  const incoming = pass(frame);
  return { flags: incoming.flags, outcome: readOutcome(incoming, request) };
}

describe("a response that goes to a thread", () => {
  it("keeps its outputs, and the names that differ from those of the request", () => {
    const outputs = new Map([["y", Tensor.fromElements("BYTES", [2], [Buffer.from("ab"), Buffer.from("")])]]);
    const response = { id: "b", modelName: "other", modelVersion: "2", parameters: { p: 1 }, outputs };
    const { outcome } = received(response) as { outcome: InferenceResponse };
    expect([outcome.id, outcome.modelName, outcome.modelVersion, { ...outcome.parameters }]).toEqual([
      "b",
      "other",
      "2",
      { p: 1 },
    ]);
    expect(outcome.outputs.get("y")?.elements).toEqual([
      new Uint8Array(Buffer.from("ab")),
      new Uint8Array(0),
    ]);
  });

  it("copies a large output, because the model may keep it", () => {
    const elements = new Float32Array(20_000).fill(2);
    const outputs = new Map([["y", Tensor.fromElements("FP32", [20_000], elements)]]);
    const { outcome } = received({ ...request, parameters: NO_PARAMETERS, outputs });
    const { bytes } = (outcome as InferenceResponse).outputs.get("y")!;
    expect(Buffer.compare(bytes, new Uint8Array(elements.buffer))).toBe(0);
    // The copy is freed when it has been sent.
    expect(freeWhenSent(new Uint8Array(elements.buffer))).toBeUndefined();
    freeWhenSent(bytes)!();
    expect([bytes.length, elements.length]).toEqual([0, 20_000]);
  });

  it("keeps code, reason, text and retry time of an error, and whether it is a refusal", () => {
    const error = new TritonError("UNAVAILABLE", "full", { reason: "QUEUE_FULL", retryAfterMs: 20 });
    const { flags, outcome } = received(error, true, true);
    expect(outcome).toMatchObject({
      code: "UNAVAILABLE",
      reason: "QUEUE_FULL",
      message: "full",
      retryAfterMs: 20,
    });
    expect(flags & RESPONSE.refused).not.toBe(0);
    expect(received(new TritonError("INTERNAL", "x")).outcome).not.toHaveProperty("retryAfterMs");
  });

  it("is undefined for an end without a response", () => {
    const { flags, outcome } = received(undefined);
    expect([outcome, flags & RESPONSE.final]).toEqual([undefined, RESPONSE.final]);
  });
});

/** Two ends of a link in one thread. The frames that arrive at the second end are lists of numbers, or tensors. */
function openLink(now?: () => number) {
  const rings = [createRing(), createRing()] as const;
  const { port1, port2 } = new MessageChannel();
  const got: number[][] = [];
  const tensors: Tensor[] = [];
  let wakeUps = 0;
  let onFrame = (): void => {};
  const sender: ThreadLink = new ThreadLink(
    { incoming: rings[0], outgoing: rings[1], memory: port1 },
    {
      wakeOther: () => {
        wakeUps++;
        setImmediate(() => receiver.wake());
      },
    },
    { frame: () => {} },
  );
  const receiver: ThreadLink = new ThreadLink(
    { incoming: rings[1], outgoing: rings[0], memory: port2 },
    { wakeOther: () => void setImmediate(() => sender.wake()) },
    {
      frame: (frame) => {
        if (frame.kind === 2) tensors.push(...readTensorMap(frame, []).values());
        else got.push([frame.number, frame.word()]);
        onFrame();
      },
    },
    now,
  );
  const until = (count: number) =>
    new Promise<void>((resolve) => {
      onFrame = () => got.length + tensors.length >= count && resolve();
    });
  const send = (number: number, value: number) => {
    sender.outgoing.open(1, number).word(value);
    sender.outgoing.close(0);
    sender.send();
  };
  const close = () => {
    sender.close();
    receiver.close();
  };
  return { sender, send, got, tensors, until, close, wakeUps: () => wakeUps };
}

describe("a link", () => {
  it("delivers all frames of a turn in order, with at most one wake-up", async () => {
    const { send, got, until, close, wakeUps } = openLink();
    const all = until(100);
    for (let i = 0; i < 100; i++) send(i, i * i);
    await all;
    expect(got).toEqual(Array.from({ length: 100 }, (_, i) => [i, i * i]));
    expect(wakeUps()).toBeLessThanOrEqual(1);
    close();
  });

  it("shows the frames of a long turn before its end", async () => {
    const { send, until, close, wakeUps } = openLink();
    const first = until(1);
    send(1, 1);
    await first;
    // After a turn without frames, the receiver sleeps.
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    const before = wakeUps();
    send(2, 2);
    expect(wakeUps()).toBe(before);
    const end = performance.now() + 3;
    while (performance.now() < end);
    send(3, 3);
    expect(wakeUps()).toBe(before + 1);
    close();
  });

  it("keeps frames that find the ring full, and delivers them in order", async () => {
    const { sender, send, got, until, close } = openLink();
    const count = 60_000;
    const all = until(count);
    for (let i = 0; i < count; i++) send(i, -i);
    expect(sender.behind).toBe(true);
    await all;
    expect(got.every(([number, value], i) => number === i && value === -i)).toBe(true);
    expect(sender.behind).toBe(false);
    close();
  });

  it("hands over frames that are larger than the ring takes", async () => {
    const { sender, tensors, until, close } = openLink();
    const inputs = new Map(
      Array.from({ length: 5000 }, (_, i) => [
        `${i}`.padStart(100, "x"),
        Tensor.fromBytes("UINT8", [1], Uint8Array.of(i)),
      ]),
    );
    const all = until(5000);
    sender.outgoing.open(2, 1);
    writeTensorMap(sender.outgoing, inputs, [], true);
    sender.outgoing.close(0);
    expect(sender.outgoing.size).toBeGreaterThan(MAX_FRAME_BYTES);
    sender.send();
    await all;
    expect(tensors.map(({ bytes }) => bytes[0])).toEqual(Array.from({ length: 5000 }, (_, i) => i & 255));
    close();
  });

  /** Sends 20 frames with 600 KB each. Returns the most that arrived in one turn, when turns are this far apart. */
  async function mostInOneTurn(millisecondsApart: number): Promise<number> {
    let now = 0;
    const { sender, tensors, until, close } = openLink(() => {
      now += millisecondsApart;
      return now;
    });
    const count = 20;
    const all = until(count);
    for (let i = 0; i < count; i++) {
      const bytes = new Uint8Array(600_000).fill(i);
      sender.outgoing.open(2, i);
      writeTensorMap(
        sender.outgoing,
        new Map([["x", Tensor.fromBytes("UINT8", [600_000], bytes)]]),
        [],
        true,
      );
      sender.outgoing.close(0);
      sender.send();
    }
    let most = 0;
    for (let before = 0; tensors.length < count; before = tensors.length) {
      await new Promise((resolve) => setImmediate(resolve));
      most = Math.max(most, tensors.length - before);
    }
    await all;
    expect(tensors.map(({ bytes }) => [bytes.length, bytes[0], bytes.at(-1)])).toEqual(
      Array.from({ length: count }, (_, i) => [600_000, i, i]),
    );
    close();
    return most;
  }

  it("takes over a megabyte of memory in a turn, with the frame that exceeds it", async () => {
    expect(await mostInOneTurn(0)).toBe(2);
    expect(await mostInOneTurn(0.5)).toBe(2);
  });

  it("takes over more after a long turn, a megabyte for each millisecond", async () => {
    expect(await mostInOneTurn(5)).toBe(9);
    expect(await mostInOneTurn(100)).toBeGreaterThan(9);
  });
});

const CAPACITY = 1024;

function openRing() {
  const memory = createRing(CAPACITY);
  return { writer: new RingWriter(memory), reader: new RingReader(memory) };
}

/** A frame of `size` bytes whose second word is a number. */
function frameOf(number: number, size: number): Uint8Array {
  const words = new Int32Array(size / 4);
  words[0] = size;
  words[1] = number;
  return new Uint8Array(words.buffer);
}

function numbersIn(copy: ArrayBuffer): number[] {
  const words = new Int32Array(copy);
  const numbers: number[] = [];
  for (let at = 0; at < words.length; at += words[at]! / 4) numbers.push(words[at + 1]!);
  return numbers;
}

function readAll(reader: RingReader): number[] {
  const numbers: number[] = [];
  for (let copy = reader.read(); copy !== undefined; copy = reader.read()) numbers.push(...numbersIn(copy));
  return numbers;
}

describe("a ring", () => {
  it("hands out frames in order, and only after they are published", () => {
    const { writer, reader } = openRing();
    for (const number of [1, 2, 3]) expect(writer.write([frameOf(number, 32)], 32)).toBe(true);
    expect(reader.read()).toBeUndefined();
    writer.publish();
    expect(readAll(reader)).toEqual([1, 2, 3]);
  });

  it("refuses a frame while it is full, and takes it when frames have been read", () => {
    const { writer, reader } = openRing();
    let written = 0;
    while (writer.write([frameOf(written, 64)], 64)) written++;
    expect(written).toBe(CAPACITY / 64);
    writer.publish();
    expect(readAll(reader)).toHaveLength(written);
    expect(writer.write([frameOf(99, 64)], 64)).toBe(true);
  });

  it("keeps every frame in one piece when it wraps around", () => {
    const { writer, reader } = openRing();
    const got: number[] = [];
    const sizes = [24, 136, 72, 248, 8 * 13, 40];
    for (let number = 0; number < 5000; number++) {
      const size = sizes[number % sizes.length]!;
      while (!writer.write([frameOf(number, size)], size)) {
        writer.publish();
        got.push(...readAll(reader));
      }
    }
    writer.publish();
    got.push(...readAll(reader));
    expect(got).toEqual(Array.from({ length: 5000 }, (_, i) => i));
  });

  it("begins each part of a frame at a multiple of eight bytes", () => {
    const { writer, reader } = openRing();
    const head = frameOf(7, 8);
    new Int32Array(head.buffer)[0] = 24;
    writer.write([head, Uint8Array.of(1, 2, 3), Uint8Array.of(4)], 24);
    writer.publish();
    expect([...new Uint8Array(reader.read()!)].slice(8)).toEqual([
      1, 2, 3, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
    ]);
  });

  it("asks for a wake-up only if the reader sleeps", () => {
    const { writer, reader } = openRing();
    writer.write([frameOf(1, 32)], 32);
    expect(writer.publish()).toBe(false);
    expect(reader.sleep()).toBe(false);
    readAll(reader);
    expect(reader.sleep()).toBe(true);
    writer.write([frameOf(2, 32)], 32);
    expect(writer.publish()).toBe(true);
    expect(writer.publish()).toBe(false);
  });

  it("tells the reader once that the writer waits for space", () => {
    const { writer, reader } = openRing();
    expect(reader.wasAwaited()).toBe(false);
    writer.awaitSpace();
    expect(reader.wasAwaited()).toBe(true);
    expect(reader.wasAwaited()).toBe(false);
  });
});
