import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate } from "node:timers/promises";
import { type InferOptions, type ModelOptions, Triton, TritonError } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
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

    /** Lets it learn that a token takes 10 ms, and that the callers `brief` and `wordy` write 5 and 50 of them. */
    async teach(): Promise<this> {
      for (let i = 0; i < 8; i++) {
        await this.sendAll(["5", { caller: "brief" }]);
        await this.sendAll(["50", { caller: "wordy" }]);
        for (const tokens of [10, 100]) await this.sendAll([String(tokens), { max_tokens: tokens }]);
      }
      this.begun.length = 0;
      return this;
    }
  }

  const SHORTEST: ModelOptions = { batcher: { shortestFirst: true } };

  const DEADLINES: ModelOptions = { batcher: { deadlines: true } };

  describe("texts with shortestFirst", () => {
    it("run in the order of max_tokens", async () => {
      const bench = await new Bench(SHORTEST).teach();
      const sent = [20, 90, 40, 60, 10].map((tokens) => [String(tokens), { max_tokens: tokens }] as const);
      expect(await bench.sendAll(...sent)).toEqual(Array(5).fill("done"));
      expect(bench.begun).toEqual(["20", "10", "40", "60", "90"]);
    });

    it("run in the order of what their callers usually write, without a limit", async () => {
      const bench = await new Bench(SHORTEST).teach();
      await bench.sendAll(
        ["30 first", {}],
        ["50 a", { caller: "wordy" }],
        ["5 b", { caller: "brief" }],
        ["50 c", { caller: "wordy" }],
        ["5 d", { caller: "brief" }],
      );
      expect(bench.begun).toEqual(["30 first", "5 b", "5 d", "50 a", "50 c"]);
    });

    it("read the limit of sampling_parameters", async () => {
      const bench = await new Bench(SHORTEST).teach();
      const sent = [20, 90, 40].map((tokens) => {
        const json = JSON.stringify({ temperature: 0, max_tokens: tokens });
        const values = { text_input: [String(tokens)], sampling_parameters: [json] };
        return (async () => {
          for await (const _ of bench.handle.stream(values));
          return "done";
        })();
      });
      await bench.allOf(sent);
      expect(bench.begun).toEqual(["20", "40", "90"]);
    });

    it("let a long text run that has waited too long behind short ones", async () => {
      const bench = await new Bench(SHORTEST).teach();
      const outcomes = [bench.send("10", { max_tokens: 10 }), bench.send("100 long", { max_tokens: 100 })];
      // The short ones alone are as much as the model can do.
      for (let i = 0; i < 100; i++) {
        outcomes.push(bench.send("10", { max_tokens: 10 }));
        for (let ms = 0; ms < 100; ms += 5) await bench.clock.advance(5);
      }
      expect(bench.begun).toContain("100 long");
      expect(new Set(await bench.allOf(outcomes))).toEqual(new Set(["done"]));
    });

    it("are set by a parameter of config.pbtxt, without dynamic_batching", async () => {
      const bench = await new Bench({ parameters: { shortest_first: "true" } }).teach();
      await bench.sendAll(...[20, 90, 10].map((tokens) => [String(tokens), { max_tokens: tokens }] as const));
      expect(bench.begun).toEqual(["20", "10", "90"]);
    });

    it("run in the order of arrival without it", async () => {
      const bench = await new Bench({}).teach();
      await bench.sendAll(...[20, 90, 10].map((tokens) => [String(tokens), { max_tokens: tokens }] as const));
      expect(bench.begun).toEqual(["20", "90", "10"]);
    });

    it("run several at a time, and leave when they are cancelled", async () => {
      const bench = await new Bench(SHORTEST, 2).teach();
      const left = new AbortController();
      const outcomes = [bench.send("50 a", { max_tokens: 50 }), bench.send("50 b", { max_tokens: 50 })];
      await bench.clock.advance(1);
      outcomes.push(
        bench.send("10 gone", { max_tokens: 10 }, { signal: left.signal }),
        bench.send("20 c", { max_tokens: 20 }),
      );
      await bench.clock.advance(1);
      left.abort();
      expect(await bench.allOf(outcomes)).toEqual(["done", "done", "CANCELLED CANCELLED", "done"]);
      expect(bench.begun).toEqual(["50 a", "50 b", "20 c"]);
    });

    it("may be limited, and a full queue refuses the longest", async () => {
      const bench = new Bench({ batcher: { shortestFirst: true, defaultQueuePolicy: { maxQueueSize: 2 } } });
      await bench.teach();
      const outcomes = await bench.sendAll(
        ...[10, 50, 90, 20].map((tokens) => [String(tokens), { max_tokens: tokens }] as const),
      );
      expect(outcomes).toEqual(["done", "done", "UNAVAILABLE QUEUE_FULL", "done"]);
    });

    it("all run when the model is closed meanwhile", async () => {
      const bench = await new Bench(SHORTEST).teach();
      const outcomes = [20, 90, 10].map((tokens) => bench.send(String(tokens), { max_tokens: tokens }));
      await bench.clock.advance(1);
      const closed = bench.triton.close();
      expect(await bench.allOf(outcomes)).toEqual(["done", "done", "done"]);
      await closed;
    });
  });

  describe("texts with deadlines", () => {
    it("run the earliest deadline first", async () => {
      const bench = await new Bench(DEADLINES).teach();
      const outcomes = await bench.sendAll(
        ["10 first", { max_tokens: 10 }, { timeoutMs: 900 }],
        ["10 late", { max_tokens: 10 }, { timeoutMs: 5000 }],
        ["10 soon", { max_tokens: 10 }, { timeoutMs: 250 }],
        ["10 any", { max_tokens: 10 }],
      );
      expect(outcomes).toEqual(["done", "done", "done", "done"]);
      expect(bench.begun).toEqual(["10 first", "10 soon", "10 late", "10 any"]);
    });

    it("are refused before they begin if their text cannot be in time", async () => {
      const bench = await new Bench(DEADLINES).teach();
      const outcomes = await bench.sendAll(
        ["50 first", { max_tokens: 50 }, { timeoutMs: 900 }],
        ["100", { max_tokens: 100 }, { timeoutMs: 500 }],
        ["10", { max_tokens: 10 }, { timeoutMs: 250 }],
        ["10 in time", { max_tokens: 10 }, { timeoutMs: 900 }],
      );
      expect(outcomes).toEqual([
        "done",
        "UNAVAILABLE DEADLINE_TOO_CLOSE",
        "UNAVAILABLE DEADLINE_TOO_CLOSE",
        "done",
      ]);
      expect(bench.begun).toEqual(["50 first", "10 in time"]);
    });

    it("are not refused while the model is cold, and tried again when nothing ran for a while", async () => {
      const bench = new Bench(DEADLINES);
      expect(await bench.sendAll(["100", {}, { timeoutMs: 50 }])).toEqual(["UNAVAILABLE TIMEOUT"]);
      await bench.teach();
      await bench.clock.advance(2000);
      expect(await bench.sendAll(["2", { max_tokens: 100 }, { timeoutMs: 50 }])).toEqual(["done"]);
    });

    it("let short texts without a deadline go before long ones, where both are set", async () => {
      const bench = await new Bench({ batcher: { deadlines: true, shortestFirst: true } }).teach();
      await bench.sendAll(
        ["10 first", { max_tokens: 10 }],
        ["100 a", { max_tokens: 100 }],
        ["10 b", { max_tokens: 10 }],
        ["100 soon", { max_tokens: 100 }, { timeoutMs: 2400 }],
      );
      expect(bench.begun).toEqual(["10 first", "10 b", "100 soon", "100 a"]);
    });
  });

  describe("the setting shortestFirst", () => {
    it("is part of the configuration, and excludes settings that contradict it", () => {
      const bench = new Bench(SHORTEST);
      expect(bench.handle.config().parameters).toEqual({ shortest_first: { stringValue: "true" } });
      const bind = (config: ModelOptions) =>
        thrownBy(() =>
          bench.triton.bind({
            modelName: "other",
            inferFunc: textGenerator(async function* () {}),
            config,
          }),
        );
      expect(bind({ batcher: { shortestFirst: true, shares: { by: "caller" } } })).toContain(
        "model 'other' runs short requests first and has shares: leave one of them out",
      );
      expect(bind({ parameters: { shortest_first: "yes" } })).toContain(
        "parameter 'shortest_first' of model 'other': expected true or false, got 'yes'",
      );
      expect(bind({ batcher: { shortestFirst: "yes" as never } })).toContain("shortestFirst");
      expect(
        thrownBy(() =>
          bench.triton.bind({
            modelName: "batched",
            inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
            outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
            inferFunc: () => [],
            config: { maxBatchSize: 8, batcher: { shortestFirst: true } },
          }),
        ),
      ).toContain(
        "model 'batched' runs short requests first: expected a model that runs each request by itself, got max_batch_size 8",
      );
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
