import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate } from "node:timers/promises";
import { type ModelOptions, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { textGenerator } from "../../src/index.js";

let triton: Triton;
afterEach(() => triton.close());

function deferred() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** A model whose answers wait until they are released, by prompt. */
class HeldGenerator {
  readonly started: string[] = [];
  readonly ended: string[] = [];
  readonly signals = new Map<string, AbortSignal>();
  readonly handle;
  readonly #released = new Map<string, ReturnType<typeof deferred>>();
  readonly #begun = new Map<string, () => void>();

  constructor(concurrency: number, config: ModelOptions = {}, options: object = {}) {
    triton = new Triton(options);
    const inferFunc = textGenerator((request, { signal }) => this.#pieces(request.prompt!, signal), {
      concurrency,
    });
    this.handle = triton.bind({ modelName: "held", inferFunc, config });
  }

  async text(prompt: string, options = {}): Promise<string> {
    let text = "";
    for await (const { text_output } of this.handle.stream(
      { text_input: [prompt], stream: [true] },
      options,
    )) {
      text += text_output.text();
    }
    return text;
  }

  release(prompt: string): void {
    this.#held(prompt).resolve();
  }

  begun(prompt: string): Promise<void> {
    if (this.started.includes(prompt)) return Promise.resolve();
    return new Promise((resolve) => this.#begun.set(prompt, resolve));
  }

  #held(prompt: string) {
    const held = this.#released.get(prompt) ?? deferred();
    this.#released.set(prompt, held);
    return held;
  }

  async *#pieces(prompt: string, signal: AbortSignal) {
    try {
      this.started.push(prompt);
      this.signals.set(prompt, signal);
      this.#begun.get(prompt)?.();
      yield `${prompt}:`;
      await new Promise<void>((resolve, reject) => {
        this.#held(prompt).promise.then(resolve);
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
      yield "done";
    } finally {
      this.ended.push(prompt);
    }
  }
}

describe("requests to a text generator", () => {
  it("run at the same time, up to the concurrency, and others wait", async () => {
    const model = new HeldGenerator(2);
    const texts = ["a", "b", "c"].map((prompt) => model.text(prompt));
    await Promise.all([model.begun("a"), model.begun("b")]);
    expect(model.started).toEqual(["a", "b"]);
    model.release("b");
    await model.begun("c");
    model.release("a");
    model.release("c");
    expect(await Promise.all(texts)).toEqual(["a:done", "b:done", "c:done"]);
  });

  it("overtake requests of a lower priority in the queue", async () => {
    const model = new HeldGenerator(1, { batcher: { priorityLevels: 2, defaultPriorityLevel: 2 } });
    const first = model.text("first");
    await model.begun("first");
    const low = ["1", "2", "3", "4", "5"];
    const texts = low.map((prompt) => model.text(prompt));
    await setImmediate();
    const high = model.text("high", { priority: 1 });
    await setImmediate();
    for (const prompt of ["first", "high", ...low]) model.release(prompt);
    await Promise.all([first, high, ...texts]);
    // The batcher had prepared the next requests already; the rest is overtaken.
    expect(model.started.filter((prompt) => prompt !== "high")).toEqual(["first", ...low]);
    expect(model.started.indexOf("high")).toBeLessThan(model.started.indexOf("5"));
  });

  it("are refused when the queue is full", async () => {
    const model = new HeldGenerator(1, { batcher: { defaultQueuePolicy: { maxQueueSize: 1 } } });
    const prompts = ["1", "2", "3", "4", "5", "6"];
    const outcomes = prompts.map((prompt) => outcomeOf(model.text(prompt)));
    for (const prompt of prompts) model.release(prompt);
    expect((await Promise.all(outcomes)).join()).toContain("Exceeds maximum queue size");
  });

  it("end at their deadline, in the queue and while they run", async () => {
    const clock = new VirtualClock();
    const model = new HeldGenerator(1, {}, { clock });
    const running = outcomeOf(model.text("runs", { timeoutMs: 20 }));
    await model.begun("runs");
    const waiting = outcomeOf(model.text("waits", { timeoutMs: 10 }));
    await clock.advance(30);
    expect(await waiting).toMatch(/^UNAVAILABLE /);
    expect(await running).toMatch(/^UNAVAILABLE /);
    expect(model.signals.get("runs")!.aborted).toBe(true);
    expect(model.started).toEqual(["runs"]);
  });

  it("whose client leaves abort the signal, and the generator cleans up", async () => {
    const model = new HeldGenerator(1);
    const controller = new AbortController();
    const left = outcomeOf(model.text("left", { signal: controller.signal }));
    await model.begun("left");
    controller.abort();
    expect(await left).toMatch(/^CANCELLED /);
    expect(model.signals.get("left")!.aborted).toBe(true);
    const next = model.text("next");
    await model.begun("next");
    expect(model.ended).toEqual(["left"]);
    model.release("next");
    expect(await next).toBe("next:done");
  });

  it("keep the asynchronous context of their caller", async () => {
    const tenant = new AsyncLocalStorage<string>();
    triton = new Triton();
    const handle = triton.bind({
      modelName: "tenants",
      inferFunc: textGenerator(
        async function* () {
          yield `${tenant.getStore()} `;
          await null;
          yield `${tenant.getStore()}`;
        },
        { concurrency: 1 },
      ),
    });
    const text = (name: string) =>
      tenant.run(name, async () => {
        for await (const { text_output } of handle.stream({ text_input: [""] })) return text_output.text();
        return "";
      });
    expect(await Promise.all(["a", "b", "c"].map(text))).toEqual(["a a", "b b", "c c"]);
  });

  it("of a generator that never waits leave the event loop its turns", async () => {
    triton = new Triton();
    const handle = triton.bind({
      modelName: "endless",
      inferFunc: textGenerator(function* () {
        for (;;) yield { text: "", tokens: 1 };
      }),
    });
    const stream = handle.stream({ text_input: [""] }, { timeoutMs: 20 });
    expect(await outcomeOf(stream.next())).toMatch(/^UNAVAILABLE /);
  });
});
