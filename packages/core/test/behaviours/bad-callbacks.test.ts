import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { batch, type ModelHandle, type OutputsOf, Tensor, Triton, TritonError } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { InferenceRequest, VirtualClock } from "@tritonjs/testing";
import ndarray from "ndarray";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { type EchoHandle, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf } from "../../../../test/support/outcome.js";

let triton = new Triton();

afterEach(async () => {
  await triton.close();
  triton = new Triton();
});

describe("bad callbacks", () => {
  const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;
  const good = { y: [[1]] };

  function revoked(): object {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  }

  function detached(): Int32Array {
    const elements = new Int32Array(1);
    structuredClone(elements, { transfer: [elements.buffer] });
    return elements;
  }

  const hostile = new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error("no keys");
      },
    },
  );

  const unreadable = Object.defineProperty(new Error(), "message", {
    get() {
      throw new Error("no message");
    },
  });

  const thrown = (value: unknown) => () => {
    throw value;
  };

  /** What a callback does on its first call, and the outcome of its request. */
  const cases: readonly [what: string, act: () => unknown, outcome: RegExp][] = [
    [
      "returns undefined",
      () => undefined,
      /^INTERNAL model 'm' returned a wrong value: expected an object .* got undefined$/,
    ],
    [
      "returns null",
      () => null,
      /^INTERNAL model 'm' returned a wrong value: expected an object .* got null$/,
    ],
    [
      "returns a function",
      () => () => good,
      /^INTERNAL model 'm' returned a wrong value: expected an object .* got function$/,
    ],
    [
      "returns a list of another length",
      () => [],
      /^INTERNAL model 'm': Outputs length different than config outputs length: expected 1 \('y'\), got 0$/,
    ],
    [
      "returns too many rows",
      () => ({ y: [[1], [2]] }),
      /^INTERNAL model 'm': Received output tensors with different batch/,
    ],
    [
      "returns another data type",
      () => ({ y: new Float64Array(1) }),
      /expected Int32Array, got Float64Array$/,
    ],
    [
      "returns a number out of range",
      () => ({ y: [[2 ** 31]] }),
      /expected an integer in \[-2\^31, 2\^31\), got/,
    ],
    ["returns another shape", () => ({ y: [[[1]]] }), /expected shape \[-1,1\], got \[1,1,1\]$/],
    [
      "returns ragged arrays",
      () => ({ y: [[1], [2, 3]] }),
      /^INTERNAL model 'm' returned a wrong output 'y'/,
    ],
    [
      "returns null as an output",
      () => ({ y: null }),
      /^INTERNAL model 'm' returned a wrong output 'y'.*got null$/,
    ],
    [
      "returns a detached buffer",
      () => ({ y: detached() }),
      /expected elements for shape \[1,1\], got an array of 0$/,
    ],
    [
      "returns an ndarray over a detached buffer",
      () => ({ y: ndarray(detached(), [1, 1]) }),
      /wrong output 'y': Cannot perform Construct on a detached ArrayBuffer$/,
    ],
    [
      "returns strides beyond the elements",
      () => ({ y: ndarray(new Int32Array(1), [2, 1], [5, 1]) }),
      /expected more elements than its 1$/,
    ],
    [
      "returns more than fits into memory",
      () => ({ y: ndarray(new Int32Array(1), [1, 2 ** 52], [0, 0]) }),
      /^INTERNAL/,
    ],
    ["returns a revoked proxy", revoked, /^INTERNAL model 'm': Cannot perform/],
    ["returns a proxy that throws", () => hostile, /^INTERNAL model 'm': no keys$/],
    [
      "returns outputs whose getter throws",
      () => ({
        get y() {
          throw new Error("no y");
        },
      }),
      /^INTERNAL model 'm': no y$/,
    ],
    ["throws undefined", thrown(undefined), /^INTERNAL undefined$/],
    ["throws null", thrown(null), /^INTERNAL model 'm': null$/],
    ["throws a symbol", thrown(Symbol("oops")), /^INTERNAL model 'm': Symbol\(oops\)$/],
    ["throws a frozen object", thrown(Object.freeze({})), /^INTERNAL model 'm': \[object Object\]$/],
    ["throws an object without a prototype", thrown(Object.create(null)), /^INTERNAL unknown error/],
    ["throws an error whose message throws", thrown(unreadable), /^INTERNAL unknown error/],
    [
      "throws a revoked proxy",
      () => {
        throw revoked();
      },
      /^INTERNAL unknown error/,
    ],
    ["rejects with a symbol", () => Promise.reject(Symbol("later")), /^INTERNAL model 'm': Symbol\(later\)$/],
    [
      "returns a thenable whose then throws",
      () => ({
        // biome-ignore lint/suspicious/noThenProperty: what is returned is meant to be bad
        get then() {
          throw new Error("no then");
        },
      }),
      /^INTERNAL model 'm': no then$/,
    ],
    [
      "resolves twice, and rejects after that",
      () => ({
        // biome-ignore lint/suspicious/noThenProperty: what is returned is meant to be bad
        then(resolve: (value: unknown) => void, reject: (error: unknown) => void) {
          resolve(good);
          resolve({ y: [[2]] });
          reject(new Error("too late"));
        },
      }),
      /^done$/,
    ],
    [
      "blocks for a while",
      () => {
        for (const end = Date.now() + 30; Date.now() < end; );
        return good;
      },
      /^done$/,
    ],
  ];

  /** A callback that does `act` on its first call and behaves from then on. */
  function bindOnce(act: () => unknown): EchoHandle {
    let calls = 0;
    return triton.bind({
      ...specs,
      inferFunc: batch(({ x }) => (calls++ === 0 ? (act() as typeof good) : { y: x })),
    });
  }

  describe("a callback that", () => {
    it.each(cases)("%s fails its own request at most and is called again", async (_what, act, outcome) => {
      const handle = bindOnce(act);
      expect(await outcomeOf(echo(handle, 1))).toMatch(outcome);
      expect(await echo(handle, 2)).toBe(2);
      const { success, fail } = handle.statistics().inferenceStats;
      expect(success.count + fail.count).toBe(2);
    });

    it("never settles loses its requests to their deadlines and lets the model close", async () => {
      const clock = new VirtualClock();
      const own = new Triton({ clock, exitTimeoutSecs: 1 });
      const handle = own.bind({ ...specs, inferFunc: batch(() => new Promise<never>(() => {})) });
      await handle.ready();
      const late = outcomeOf(echo(handle, 1, { timeoutMs: 5 }));
      const forever = outcomeOf(echo(handle, 2));
      await clock.advance(5);
      expect(await late).toMatch(/^UNAVAILABLE/);
      const closed = own.close();
      await clock.advance(1000);
      await closed;
      expect(await forever).toMatch(/^UNAVAILABLE model 'm' was stopped before the request finished$/);
    });
  });

  describe("bytes next to an output", () => {
    const bytes = {
      inputs: [{ name: "x", dtype: "UINT8", shape: [3] }],
      outputs: [{ name: "y", dtype: "UINT8", shape: [3] }],
    } as const;
    type Bytes = ModelHandle<typeof bytes.inputs, typeof bytes.outputs>;

    const models: Record<string, () => Bytes> = {
      "this thread": () =>
        triton.bind({
          modelName: "m",
          ...bytes,
          inferFunc: batch(({ x }) => ({ y: Buffer.from(Uint8Array.from(x.data)) })),
        }),
      "a worker": () =>
        triton.bind({
          modelName: "m",
          ...bytes,
          inferFunc: new URL("./fixtures/pooled-buffer.mjs", import.meta.url),
        }),
    };
    it.each(Object.entries(models))(
      "are not sent with it from a Buffer pool, from %s",
      async (_where, bind) => {
        const handle = bind();
        await handle.ready();
        for (const value of [1, 2]) {
          const tensor = await new Promise<Tensor>((resolve, reject) => {
            const inputs = new Map([
              ["x", Tensor.fromElements("UINT8", [1, 3], Uint8Array.of(value, value, value))],
            ]);
            const receive = (outcome: unknown) =>
              TritonError.is(outcome)
                ? reject(outcome)
                : resolve((outcome as { outputs: Map<string, Tensor> }).outputs.get("y")!);
            serviceOf(triton)
              .model("m", "")
              .infer(new InferenceRequest("m", { inputs }, { receive }));
          });
          expect([...tensor.bytes]).toEqual([value, value, value]);
          const { y } = await handle.infer({ x: [[value, 5, 6]] });
          expect([...new Uint8Array(y.data.buffer)]).toEqual([value, 5, 6]);
        }
      },
    );
  });

  describe("a callback of a decoupled model that", () => {
    const collect = async (handle: EchoHandle) => {
      const values: number[] = [];
      try {
        for await (const { y } of handle.stream({ x: [[1]] })) values.push(y.data[0]!);
      } catch (error) {
        return [...values, TritonError.from(error).message];
      }
      return values;
    };

    it("sends after the final response is ignored", async () => {
      let sendMore = () => {};
      const handle = triton.bind({
        ...specs,
        config: { decoupled: true },
        inferFunc: ([request]) => {
          const { responseSender: sender } = request!;
          void sender.send(good, { final: true });
          sendMore = () => {
            void sender.send({ y: [[2]] });
            void sender.send(new Error("late"), { final: true });
            sender.close();
          };
          sendMore();
        },
      });
      expect(await collect(handle)).toEqual([1]);
      sendMore();
      expect(await collect(handle)).toEqual([1]);
      const { success, fail } = handle.statistics().inferenceStats;
      expect([success.count, fail.count]).toEqual([2, 0]);
    });

    it("keeps yielding after its end is not asked again", async () => {
      let asked = 0;
      const stubborn = {
        [Symbol.asyncIterator]: () => stubborn,
        next: async () => ({ done: false, value: { y: [[++asked]] } }),
        return: async () => ({ done: false, value: good }),
      };
      const handle = triton.bind({
        ...specs,
        config: { decoupled: true },
        inferFunc: batch(() => stubborn as unknown as AsyncIterable<typeof good>),
      });
      for await (const { y } of handle.stream({ x: [[1]] })) if (y.data[0] === 3) break;
      await handle.unbind();
      const askedThen = asked;
      await new Promise((resolve) => setImmediate(resolve));
      expect(asked).toBe(askedThen);
    });

    it("throws after some responses ends its stream with the error", async () => {
      const handle = triton.bind({
        ...specs,
        inferFunc: batch(async function* () {
          yield good;
          throw Symbol("enough");
        }),
      });
      expect(await collect(handle)).toEqual([1, "model 'm': Symbol(enough)"]);
    });
  });
});

describe("callback faults", () => {
  const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;

  /** A batch callback that returns a value of a wrong type. */
  function bindReturning(result: (values: readonly number[]) => unknown): EchoHandle {
    return triton.bind({
      ...specs,
      inferFunc: batch(({ x }) => result([...x.data]) as OutputsOf<typeof echoOutputs>),
    });
  }

  describe("a callback that throws", () => {
    it("fails its batch with its message, and the next batch runs", async () => {
      let calls = 0;
      const handle = bindReturning((values) => {
        if (calls++ === 0) throw new RangeError("out of cheese");
        return { y: Int32Array.from(values) };
      });
      await handle.ready();
      expect(await outcomesOf([echo(handle, 1), echo(handle, 2)])).toEqual([
        "INTERNAL model 'm': out of cheese",
        "INTERNAL model 'm': out of cheese",
      ]);
      expect(await echo(handle, 3)).toBe(3);
    });

    it("sets the error code with a TritonError, and may throw any value", async () => {
      const thrown: unknown[] = [new TritonError("NOT_FOUND", "no such user"), "text", undefined];
      const handle = bindReturning(() => {
        throw thrown.shift();
      });
      expect(await outcomeOf(echo(handle, 1))).toBe("NOT_FOUND no such user");
      expect(await outcomeOf(echo(handle, 1))).toBe("INTERNAL model 'm': text");
      expect(await outcomeOf(echo(handle, 1))).toBe("INTERNAL undefined");
    });
  });

  describe("a plain callback", () => {
    it("fails single requests by returning an error for them", async () => {
      const handle = triton.bind({
        ...specs,
        inferFunc: async (requests) =>
          requests.map(({ inputs: { x } }) => {
            if (x.data[0] === 2) return new Error("no twos");
            if (x.data[0] === 3) return new TritonError("UNSUPPORTED", "no threes");
            return { y: x };
          }),
      });
      await handle.ready();
      const sent = [1, 2, 3, 4].map((value) => echo(handle, value));
      expect(await outcomesOf(sent)).toEqual([
        "done",
        "INTERNAL model 'm': no twos",
        "UNSUPPORTED no threes",
        "done",
      ]);
      expect(handle.statistics().executionCount).toBe(1);
    });

    it("fails single requests by returning wrong outputs for them", async () => {
      const handle = triton.bind({
        ...specs,
        inferFunc: (requests) =>
          requests.map(({ inputs: { x } }) => ({ y: x.data[0] === 2 ? new Int32Array(3) : x })),
      });
      await handle.ready();
      expect(await outcomesOf([1, 2].map((value) => echo(handle, value)))).toEqual([
        "done",
        "INTERNAL model 'm' returned a wrong output 'y': expected elements for shape [1,1], got an array of 3",
      ]);
    });

    it("gets an error when it returns another number of results", async () => {
      const handle = triton.bind({ ...specs, inferFunc: () => [] });
      expect(await outcomeOf(echo(handle, 1))).toBe(
        "INTERNAL Number of outputs returned by `m` inference callable (0) does not match number of requests (1) " +
          "received from Triton.",
      );
    });
  });
});

interface Line {
  readonly message: string;
  readonly about: unknown;
}

/** A server whose error lines the test reads. */
function loggedTriton(): { triton: Triton; errors: Line[] } {
  const errors: Line[] = [];
  const logger = {
    error: (message: string, about?: unknown) => errors.push({ message, about }),
    warn() {},
    info() {},
    debug() {},
    takesSubjects: true,
  };
  const triton = new Triton({ logger });
  onTestFinished(() => triton.close());
  return { triton, errors };
}

const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;

function fail(): never {
  throw new RangeError("out of cheese");
}

describe("callback stacks", () => {
  it("logs the stack of a callback's error once for each place that throws", async () => {
    const { triton, errors } = loggedTriton();
    const handle = triton.bind({
      ...specs,
      inferFunc: batch(({ x }) => {
        if (x.data[0] === 9) throw new TypeError("nine");
        return fail();
      }),
    });
    for (const id of ["a", "b"]) await expect(handle.infer({ x: [[1]] }, { id })).rejects.toThrow("cheese");
    await expect(handle.infer({ x: [[9]] }, { id: "c" })).rejects.toThrow("nine");
    expect(errors.map(({ about }) => about)).toEqual([
      { module: "backend_model_instance", model: "m", version: "1", request_id: "a" },
      { module: "backend_model_instance", model: "m", version: "1", request_id: "c" },
    ]);
    const [first, second, third] = errors[0]!.message.split("\n");
    expect(first).toBe("the code of model 'm' version 1 failed in request 'a': RangeError: out of cheese");
    expect(second).toMatch(/ {4}at fail \(.*bad-callbacks\.test\.ts:\d+:\d+\)/);
    expect(third).toMatch(/bad-callbacks\.test\.ts:\d+:\d+/);
    expect(errors[1]!.message).toMatch(/: TypeError: nine\n.*bad-callbacks\.test\.ts/);
  });

  it("puts the program's own frames before those of packages", async () => {
    const { triton, errors } = loggedTriton();
    const handle = triton.bind({
      ...specs,
      inferFunc: batch(() => {
        const error = new Error("inside");
        error.stack =
          "Error: inside\n    at f (/app/node_modules/p/i.js:1:1)\n    at mine (/app/model.js:2:3)";
        throw error;
      }),
    });
    await outcomeOf(echo(handle, 1));
    expect(errors[0]!.message.split("\n").slice(1)).toEqual([
      "    at mine (/app/model.js:2:3)",
      "    at f (/app/node_modules/p/i.js:1:1)",
    ]);
  });

  it("logs no stack for an error that the callback gives to its client", async () => {
    const { triton, errors } = loggedTriton();
    const thrown: unknown[] = [new TritonError("NOT_FOUND", "no such user"), "text", undefined];
    const handle = triton.bind({
      ...specs,
      inferFunc: batch(() => {
        throw thrown.shift();
      }),
    });
    for (let i = 0; i < 3; i++) await outcomeOf(echo(handle, i));
    expect(errors).toEqual([]);
  });

  it("stops after 64 places, and says so once", async () => {
    const { triton, errors } = loggedTriton();
    let calls = 0;
    const handle = triton.bind({
      ...specs,
      inferFunc: batch(() => {
        const error = new Error("generated");
        error.stack = `Error: generated\n    at mine (/app/model.js:${++calls}:1)`;
        throw error;
      }),
    });
    for (let i = 0; i < 80; i++) await outcomeOf(echo(handle, i));
    expect(errors).toHaveLength(65);
    expect(errors[64]!.message).toMatch(/failed at 64 places/);
  });

  it("logs the stack of a module in a worker that throws in a request, and while it loads", async () => {
    const { triton, errors } = loggedTriton();
    const directory = mkdtempSync(join(tmpdir(), "tritonjs-stacks-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const bind = (modelName: string, source: string) => {
      const path = join(directory, `${modelName}.mjs`);
      writeFileSync(path, source);
      return triton.bind({ ...specs, modelName, inferFunc: pathToFileURL(path) });
    };
    await outcomeOf(
      echo(bind("thrower", "export default function run() {\n  throw new Error('mine');\n}\n"), 1),
    );
    expect(errors[0]!.message).toMatch(
      /^the code of model 'thrower' version 1 failed in a request: Error: mine\n.*thrower\.mjs:2:9/,
    );
    await outcomeOf(echo(bind("loader", "export default () => {};\nundefined.x;\n"), 1));
    expect(errors[1]!.message).toMatch(
      /^failed to load 'loader' version 1: .*reading 'x'.*\n.*loader\.mjs:2:11/,
    );
  });
});
