import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { ConcurrencyGate, onAbort } from "../../src/concurrency-gate.js";

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

describe("followers of an abort signal", () => {
  it("are all called once on abort, behind one listener", () => {
    const controller = new AbortController();
    const called: number[] = [];
    for (const follower of [1, 2, 3]) onAbort(controller.signal, () => called.push(follower));
    expect(listeners(controller.signal)).toBe(1);
    controller.abort();
    controller.abort();
    expect(called).toEqual([1, 2, 3]);
  });

  it("are not called after they stop, and leave no listener behind after the last one", () => {
    const controller = new AbortController();
    const called: number[] = [];
    const stops = [1, 2].map((follower) => onAbort(controller.signal, () => called.push(follower)));
    stops[0]!();
    expect(listeners(controller.signal)).toBe(1);
    stops[1]!();
    stops[1]!();
    expect(listeners(controller.signal)).toBe(0);
    onAbort(controller.signal, () => called.push(3));
    stops[0]!();
    controller.abort();
    expect(called).toEqual([3]);
  });

  it("may stop themselves and other followers while they are called", () => {
    const controller = new AbortController();
    const called: number[] = [];
    const stops = [1, 2, 3].map((follower) =>
      onAbort(controller.signal, () => {
        called.push(follower);
        stops[0]!();
        stops[1]!();
      }),
    );
    controller.abort();
    expect(called).toEqual([1, 3]);
  });
});

/** Tasks that a test ends one by one, in the order in which they started. */
class Tasks {
  readonly started: string[] = [];
  readonly #ends: (() => void)[] = [];

  task = (name: string) => () => {
    this.started.push(name);
    return new Promise<string>((resolve) => this.#ends.push(() => resolve(name)));
  };

  endOldest(): void {
    this.#ends.shift()!();
  }
}

const settled = () => new Promise(setImmediate);

describe("the concurrency gate", () => {
  it("runs up to the limit, and the other calls wait in order", async () => {
    const gate = new ConcurrencyGate(2, 10);
    const tasks = new Tasks();
    const all = ["a", "b", "c", "d"].map((name) => gate.run(tasks.task(name), undefined));
    expect(tasks.started).toEqual(["a", "b"]);
    tasks.endOldest();
    await settled();
    expect(tasks.started).toEqual(["a", "b", "c"]);
    tasks.endOldest();
    await settled();
    tasks.endOldest();
    tasks.endOldest();
    expect(await Promise.all(all)).toEqual(["a", "b", "c", "d"]);
  });

  it("rejects calls beyond the waiting limit", async () => {
    const gate = new ConcurrencyGate(1, 1);
    const tasks = new Tasks();
    const [first, second, third] = ["a", "b", "c"].map((name) => gate.run(tasks.task(name), undefined));
    await expect(third).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "too many requests of this client (1 run, 1 wait): send fewer at a time, or raise its limits",
    });
    tasks.endOldest();
    await first;
    tasks.endOldest();
    expect(await second).toBe("b");
  });

  it("gives the place of a failed call to the next one", async () => {
    const gate = new ConcurrencyGate(1, 1);
    const failing = gate.run(() => Promise.reject(new Error("no")), undefined);
    const next = gate.run(() => Promise.resolve("next"), undefined);
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe("next");
    expect(await gate.run(() => Promise.resolve("later"), undefined)).toBe("later");
  });

  it("drops calls that are cancelled while they wait", async () => {
    const gate = new ConcurrencyGate(1, 1);
    const tasks = new Tasks();
    const controller = new AbortController();
    const first = gate.run(tasks.task("a"), undefined);
    const cancelled = gate.run(tasks.task("b"), controller.signal);
    controller.abort();
    await expect(cancelled).rejects.toMatchObject({ code: "CANCELLED" });
    const third = gate.run(tasks.task("c"), undefined);
    tasks.endOldest();
    await first;
    await settled();
    tasks.endOldest();
    expect(await third).toBe("c");
    expect(tasks.started).toEqual(["a", "c"]);
  });

  it("closes after the last running call has ended", async () => {
    const gate = new ConcurrencyGate(1, 1);
    const tasks = new Tasks();
    const first = gate.run(tasks.task("a"), undefined);
    const waiting = gate.run(tasks.task("b"), undefined);
    const order: string[] = [];
    const closing = Promise.all([gate.close(), gate.close()]).then(() => order.push("closed"));
    await expect(waiting).rejects.toMatchObject({ code: "UNAVAILABLE", message: "the client is closed" });
    await settled();
    expect(order).toEqual([]);
    tasks.endOldest();
    expect(await first).toBe("a");
    await closing;
    await expect(gate.run(tasks.task("c"), undefined)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});
