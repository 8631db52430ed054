import { MessageChannel } from "node:worker_threads";
import { serveWebWorker, type WebWorker, webWorker } from "@tritonjs/backends/web-worker";
import { batch, sample, WebTriton } from "@tritonjs/core/web";
import { afterEach, describe, expect, it } from "vitest";
import { outcomeOf } from "../../../test/support/outcome.js";

describe("web worker", () => {
  const opened: WebTriton[] = [];

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((triton) => triton.close()));
  });

  function openTriton(): WebTriton {
    const triton = new WebTriton({
      logger: { error() {}, warn() {}, info() {}, debug() {} },
      // A web worker ends without waiting for its batch.
      exitTimeoutSecs: 0,
    });
    opened.push(triton);
    return triton;
  }

  /** A model as it is bound in the web worker. */
  type Bind = (triton: WebTriton) => Parameters<typeof serveWebWorker>[0];

  /** Web workers without threads: both sides of a channel. */
  class FakeWorkers {
    readonly open = (): WebWorker => this.#open();
    readonly ended: number[] = [];
    readonly #crashes: ((event: { message: string }) => void)[] = [];
    count = 0;

    constructor(private readonly bind: Bind) {}

    crash(index: number, message: string): void {
      this.#crashes[index]!({ message });
    }

    #open(): WebWorker {
      const index = this.count++;
      const { port1, port2 } = new MessageChannel();
      serveWebWorker(this.bind(openTriton()), port2 as never);
      port1.start();
      port2.start();
      return {
        postMessage: (message, transfer) => port1.postMessage(message, transfer),
        addEventListener: (type, listener) => {
          if (type === "error") this.#crashes[index] = listener as never;
          else port1.addEventListener(type as "message", listener as never);
        },
        terminate: () => {
          this.ended.push(index);
          port1.close();
        },
      };
    }
  }

  const spec = {
    inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [2] }],
  } as const;

  const sizes: number[] = [];

  const bindDouble: Bind = (triton) =>
    triton.bind({
      modelName: "double",
      ...spec,
      inferFunc: batch(({ x }) => {
        sizes.push(x.shape[0]!);
        return { y: x.data.map((value) => 2 * value) };
      }),
      config: { maxBatchSize: 8 },
    });

  describe("a model in web workers", () => {
    it("has the tensors of the model there, and gets the batches that the page joins", async () => {
      const workers = new FakeWorkers(bindDouble);
      const model = openTriton().bind({ modelName: "here", inferFunc: await webWorker(workers.open) });
      await model.ready();
      sizes.length = 0;
      const given = [1, 2, 3].map((value) => Float32Array.of(value, -value));
      const answers = await Promise.all(given.map((x) => model.inferSample({ x })));
      expect(answers.map(({ y }) => Array.from((y as { data: Float32Array }).data))).toEqual([
        [2, -2],
        [4, -4],
        [6, -6],
      ]);
      expect(sizes).toEqual([3]);
      // The caller's arrays are not taken away.
      expect(given.map((x) => x.length)).toEqual([2, 2, 2]);
      expect(model.config()).toMatchObject({ maxBatchSize: 8, input: [{ name: "x", dims: [2] }] });
    });

    it("has a web worker for each instance, which ends with the model", async () => {
      const workers = new FakeWorkers(bindDouble);
      const triton = openTriton();
      const inferFunc = await webWorker(workers.open);
      const model = triton.bind({ modelName: "here", inferFunc, config: { instanceGroup: [{ count: 3 }] } });
      await model.ready();
      expect(workers.count).toBe(3);
      await triton.close();
      expect(workers.ended.toSorted()).toEqual([0, 1, 2]);
    });

    it("passes texts, and the errors of the model there with their codes", async () => {
      const workers = new FakeWorkers((triton) =>
        triton.bind({
          modelName: "text",
          inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
          outputs: [{ name: "upper", dtype: "BYTES", shape: [1] }],
          inferFunc: sample(({ text }) => {
            const word = new TextDecoder().decode(text.data[0]);
            if (word === "") throw Object.assign(new TypeError("no text"));
            return { upper: [word.toUpperCase()] };
          }),
        }),
      );
      const model = openTriton().bind({ modelName: "here", inferFunc: await webWorker(workers.open) });
      const { upper } = (await model.inferSample({ text: ["ä𝄞b"] })) as unknown as {
        upper: { data: Uint8Array[] };
      };
      expect(new TextDecoder().decode(upper.data[0])).toBe("Ä𝄞B");
      expect(await outcomeOf(model.inferSample({ text: [""] }))).toMatch(/^INTERNAL .*no text/);
      expect(await outcomeOf(model.inferSample({ text: ["a", "b"] }))).toMatch(/^INVALID_ARG /);
      await model.inferSample({ text: ["a"] });
    });

    it("fails the batch of a web worker that crashes, and starts another for the next one", async () => {
      let start = () => {};
      const started = new Promise<void>((resolve) => {
        start = resolve;
      });
      const workers = new FakeWorkers((triton) =>
        triton.bind({
          modelName: "once",
          ...spec,
          inferFunc: sample(({ x }) => {
            if (x.data[0] !== 0) return { y: x };
            start();
            return new Promise<never>(() => {});
          }),
        }),
      );
      const model = openTriton().bind({ modelName: "here", inferFunc: await webWorker(workers.open) });
      const failed = outcomeOf(model.inferSample({ x: [0, 0] }));
      await started;
      workers.crash(0, "out of memory");
      expect(await failed).toMatch(/^INTERNAL .*a web worker crashed: out of memory$/);
      const { y } = (await model.inferSample({ x: [1, 2] })) as unknown as { y: { data: Float32Array } };
      expect(Array.from(y.data)).toEqual([1, 2]);
      expect(workers.count).toBe(2);
    });

    it("is refused with the reason if it does not load there, or is decoupled", async () => {
      const broken = new FakeWorkers((triton) => ({
        ...bindDouble(triton),
        ready: async () => {
          throw new Error("no model");
        },
      }));
      expect(await outcomeOf(webWorker(broken.open))).toMatch(/^INTERNAL no model$/);
      expect(broken.ended).toEqual([0]);
      const streaming = new FakeWorkers((triton) =>
        triton.bind({
          modelName: "count",
          ...spec,
          inferFunc: sample(async function* ({ x }) {
            yield { y: x };
          }),
        }),
      );
      expect(await outcomeOf(webWorker(streaming.open))).toBe(
        "UNSUPPORTED model 'count' in a web worker: expected one response for each request, got a decoupled model",
      );
      expect(await outcomeOf(webWorker({} as never))).toBe(
        "INVALID_ARG webWorker(): expected a function that starts a web worker, got object",
      );
    });
  });
});
