import { MessageChannel } from "node:worker_threads";
import { Tensor } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { readTensorMap, writeTensorMap } from "../../../src/frontend-threads/request-frames.js";
import { createRing, MAX_FRAME_BYTES } from "../../../src/frontend-threads/ring.js";
import { ThreadLink } from "../../../src/frontend-threads/thread-link.js";

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
