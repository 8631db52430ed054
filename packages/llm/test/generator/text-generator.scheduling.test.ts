import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate } from "node:timers/promises";
import { type InferOptions, type ModelOptions, Triton, TritonError } from "@tritonjs/core";
import { deadlines } from "@tritonjs/scheduling";
import { VirtualClock } from "@tritonjs/testing";
import { afterEach, describe, expect, it } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { textGenerator } from "../../src/index.js";

describe("the order of texts", () => {
  const MS_PER_TOKEN = 10;

  type Sent = readonly [prompt: string, parameters?: Record<string, string | number>, options?: InferOptions];

  const benches: Bench[] = [];

  afterEach(async () => {
    for (const bench of benches.splice(0)) {
      const closed = bench.triton.close();
      await bench.clock.advance(10_000);
      await closed;
    }
  });

  /** A text model that takes 10 ms for each token. A prompt is the length of its text and a name: `30 a`. */
  class Bench {
    readonly clock = new VirtualClock();
    readonly triton = new Triton({ clock: this.clock, allowCpuMetrics: false });
    /** Prompts in the order in which they began. */
    readonly begun: string[] = [];
    readonly handle;

    constructor(config: ModelOptions, concurrency = 1) {
      benches.push(this);
      const { clock, begun } = this;
      this.handle = this.triton.bind({
        modelName: "writer",
        inferFunc: textGenerator(
          async function* ({ prompt }, { signal }) {
            begun.push(prompt!);
            const ms = MS_PER_TOKEN * Number.parseInt(prompt!, 10);
            await new Promise<void>((resolve) => {
              const timer = clock.setTimer(ms, resolve);
              signal.addEventListener("abort", () => {
                timer.cancel();
                resolve();
              });
            });
            yield "text";
          },
          { concurrency },
        ),
        config,
      });
    }

    async send(...[prompt, parameters = {}, options = {}]: Sent): Promise<string> {
      try {
        for await (const _ of this.handle.stream({ text_input: [prompt] }, { parameters, ...options }));
        return "done";
      } catch (error) {
        const { code, reason } = TritonError.from(error);
        return `${code} ${reason}`;
      }
    }

    /** Sends prompts that arrive one after another while the first one runs, and waits for all. */
    async sendAll(...sent: readonly Sent[]): Promise<readonly string[]> {
      const outcomes = [];
      for (const args of sent) {
        outcomes.push(this.send(...args));
        await this.clock.advance(1);
      }
      return this.allOf(outcomes);
    }

    /** Waits until all outcomes are there. Time passes in small steps, because an answer takes turns of the event loop. */
    async allOf(outcomes: readonly Promise<string>[]): Promise<readonly string[]> {
      let over = false;
      const all = Promise.all(outcomes).finally(() => {
        over = true;
      });
      while (!over) await this.clock.advance(MS_PER_TOKEN / 2);
      return all;
    }

    /** Lets it learn that a text takes 100 ms. */
    async teach(): Promise<this> {
      for (let i = 0; i < 8; i++) await this.sendAll(["10"]);
      this.begun.length = 0;
      return this;
    }
  }

  const DEADLINES: ModelOptions = { batcher: deadlines() };

  describe("texts with deadlines", () => {
    it("run the earliest deadline first", async () => {
      const bench = await new Bench(DEADLINES).teach();
      const outcomes = await bench.sendAll(
        ["10 first", {}, { timeoutMs: 900 }],
        ["10 late", {}, { timeoutMs: 5000 }],
        ["10 soon", {}, { timeoutMs: 250 }],
        ["10 any"],
      );
      expect(outcomes).toEqual(["done", "done", "done", "done"]);
      expect(bench.begun).toEqual(["10 first", "10 soon", "10 late", "10 any"]);
    });

    it("are refused before they begin if their text cannot be in time", async () => {
      const bench = await new Bench(DEADLINES).teach();
      const outcomes = await bench.sendAll(
        ["10 first", {}, { timeoutMs: 900 }],
        ["10", {}, { timeoutMs: 90 }],
        ["10 second", {}, { timeoutMs: 250 }],
        ["10 third", {}, { timeoutMs: 250 }],
        ["10 in time", {}, { timeoutMs: 900 }],
      );
      const refused = "UNAVAILABLE DEADLINE_TOO_CLOSE";
      expect(outcomes).toEqual(["done", refused, "done", refused, "done"]);
      expect(bench.begun).toEqual(["10 first", "10 second", "10 in time"]);
    });

    it("are not refused while the model is cold, and tried again when nothing ran for a while", async () => {
      const bench = new Bench(DEADLINES);
      expect(await bench.sendAll(["100", {}, { timeoutMs: 50 }])).toEqual(["UNAVAILABLE TIMEOUT"]);
      await bench.teach();
      await bench.clock.advance(2000);
      expect(await bench.sendAll(["2", {}, { timeoutMs: 50 }])).toEqual(["done"]);
    });
  });
});

describe("the scheduling of texts", () => {
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
});
