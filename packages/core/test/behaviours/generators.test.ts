import { batch, type InferContext, sample, Triton, TritonError } from "@tritonjs/core";
import { afterEach, describe, expect, it } from "vitest";

const inputs = [{ name: "n", dtype: "INT32", shape: [1] }] as const;
const outputs = [{ name: "i", dtype: "INT32", shape: [1] }] as const;

let triton: Triton;
afterEach(() => triton.close());

/** A model `count` that answers its requests with a generator. */
function bind(
  generator: (n: number, context: InferContext) => AsyncGenerator<{ i: readonly number[] }>,
  options = {},
) {
  triton = new Triton(options);
  return triton.bind({
    modelName: "count",
    inputs,
    outputs,
    inferFunc: sample(async function* ({ n }, context) {
      yield* generator(n.get(0), context);
    }),
  });
}

type Handle = ReturnType<typeof bind>;

/** The responses to a request; an error comes last. */
async function read(
  handle: Handle,
  n: number,
  limit = Number.POSITIVE_INFINITY,
  options = {},
): Promise<unknown[]> {
  const seen: unknown[] = [];
  try {
    for await (const { i } of handle.stream({ n: [n] }, options)) if (seen.push(i.get(0)) >= limit) break;
  } catch (error) {
    seen.push(`${TritonError.from(error).code}: ${TritonError.from(error).message}`);
  }
  return seen;
}

/** Counts forever and records when it is ended. */
function endless() {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const told = { ended, made: 0 };
  const generator = async function* () {
    try {
      for (let i = 0; ; i++) {
        told.made++;
        yield { i: [i] };
      }
    } finally {
      end();
    }
  };
  return { told, generator };
}

describe("a generator that never ends", () => {
  it("ends with its reader and makes no more responses than are read", async () => {
    const { told, generator } = endless();
    const handle = bind(generator);
    expect(await read(handle, 0, 3)).toEqual([0, 1, 2]);
    expect(await read(handle, 0, 2)).toEqual([0, 1]);
    await told.ended;
    expect(told.made).toBeLessThan(20);
  });

  it("ends at the timeout of its request", async () => {
    const { told, generator } = endless();
    const handle = bind(generator);
    const seen = await read(handle, 0, Number.POSITIVE_INFINITY, { timeoutMs: 20 });
    expect(seen.at(-1)).toMatch(/^UNAVAILABLE: /);
    expect(await read(handle, 0, 1)).toEqual([0]);
    await told.ended;
  });

  it("ends when the server closes, and its reader gets an error", async () => {
    const { told, generator } = endless();
    const handle = bind(generator, { exitTimeoutSecs: 0 });
    const stream = handle.stream({ n: [0] });
    expect((await stream.next()).value?.i.get(0)).toBe(0);
    const closed = triton.close();
    const rest = (async () => {
      for await (const _ of stream);
    })();
    await expect(rest).rejects.toThrow("model 'count' was stopped before the request finished");
    await closed;
    await told.ended;
  });
});

describe("a generator that outlives its client", () => {
  it("sees its signal abort while it waits, and the next request runs", async () => {
    const controller = new AbortController();
    let aborted = 0;
    const handle = bind(async function* (n, { signal }) {
      yield { i: [n] };
      if (n === 0) return;
      setImmediate(() => controller.abort());
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      aborted++;
      yield { i: [-1] };
    });
    const seen = await read(handle, 1, Number.POSITIVE_INFINITY, { signal: controller.signal });
    expect(seen).toEqual([1, expect.stringMatching(/^CANCELLED: /)]);
    expect(await read(handle, 0)).toEqual([0]);
    expect(aborted).toBe(1);
  });
});

describe("a generator that fails", () => {
  it("after its first response: the client gets that response, then the error, and the next request runs", async () => {
    const handle = bind(async function* (n) {
      yield { i: [n] };
      if (n > 0) throw new TritonError("UNAVAILABLE", "the source is dry");
    });
    expect(await read(handle, 3)).toEqual([3, "UNAVAILABLE: the source is dry"]);
    expect(await read(handle, 0)).toEqual([0]);
  });

  it("by yielding wrong tensors: the client gets the correct responses, then the error", async () => {
    let ended = false;
    const handle = bind(async function* (n) {
      try {
        yield { i: [n] };
        yield { i: [1, 2] };
        yield { i: [3] };
      } finally {
        ended = true;
      }
    });
    expect(await read(handle, 7)).toEqual([
      7,
      expect.stringMatching(/^INTERNAL: model 'count' returned .*output 'i'/),
    ]);
    expect(await read(handle, 7, 1)).toEqual([7]);
    expect(ended).toBe(true);
  });
});

describe("a generator for a whole batch", () => {
  it("answers each request with its own rows, and continues for the requests that are left", async () => {
    triton = new Triton();
    let ended = false;
    const handle = triton.bind({
      modelName: "count",
      inputs,
      outputs,
      inferFunc: batch(async function* ({ n }) {
        try {
          for (let i = 0; ; i++) yield { i: [...n.data].map((value) => [value + i]) };
        } finally {
          ended = true;
        }
      }),
    });
    const take = async (n: number, limit: number) => {
      const seen: number[] = [];
      for await (const { i } of handle.stream({ n: [[n]] })) if (seen.push(i.get(0, 0)) === limit) break;
      return seen;
    };
    expect(await Promise.all([take(10, 2), take(20, 5)])).toEqual([
      [10, 11],
      [20, 21, 22, 23, 24],
    ]);
    expect(await take(0, 1)).toEqual([0]);
    expect(ended).toBe(true);
  });

  it("ends each request separately when it yields plain lists", async () => {
    triton = new Triton();
    const handle = triton.bind({
      modelName: "count",
      inputs,
      outputs,
      inferFunc: async (requests) => {
        for (let i = 0; requests.some(({ responseSender }) => responseSender.isOpen); i++) {
          for (const {
            inputs: { n },
            responseSender,
          } of requests) {
            if (!responseSender.isOpen) continue;
            if (i < n.get(0, 0)) await responseSender.send({ i: [[i]] });
            else responseSender.close();
          }
        }
      },
      config: { decoupled: true },
    });
    const lengths = await Promise.all(
      [3, 0, 5].map(async (n) => {
        let count = 0;
        for await (const _ of handle.stream({ n: [[n]] })) count++;
        return count;
      }),
    );
    expect(lengths).toEqual([3, 0, 5]);
  });
});
