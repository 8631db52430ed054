import { describe, expect, it } from "vitest";
import { ConcurrencyGate } from "../../src/concurrency-gate.js";

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
