import { batch, type OutputsOf, Triton, TritonError } from "@tritonjs/core";
import { afterEach, describe, expect, it } from "vitest";
import { type EchoHandle, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf } from "../../../../test/support/outcome.js";

let triton = new Triton();
afterEach(async () => {
  await triton.close();
  triton = new Triton();
});

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

  it("may reject its promise", async () => {
    const handle = bindReturning(() => Promise.reject(new Error("later")));
    expect(await outcomeOf(echo(handle, 1))).toBe("INTERNAL model 'm': later");
  });

  it("does not affect other models and instances", async () => {
    const bad = bindReturning(() => {
      throw new Error("broken");
    });
    const good = triton.bind({ ...specs, modelName: "good", inferFunc: batch(({ x }) => ({ y: x })) });
    const outcomes = await Promise.all([outcomeOf(echo(bad, 1)), echo(good, 2)]);
    expect(outcomes).toEqual(["INTERNAL model 'm': broken", 2]);
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

describe("wrong outputs of a batch callback", () => {
  const cases: Record<string, [unknown, string]> = {
    "no object": [7, "returned a wrong value: expected an object with its outputs by name, got number"],
    "nothing at all": [
      undefined,
      "returned a wrong value: expected an object with its outputs by name, got undefined",
    ],
    "an unknown name": [{ y: [[1]], z: [[1]] }, "returned an unknown output 'z': expected ['y']"],
    "a missing output": [{}, "did not return output 'y': got []"],
    "another data type": [
      { y: new Float32Array(1) },
      "returned a wrong output 'y' (INT32): expected Int32Array, got Float32Array",
    ],
    "a number out of range": [
      { y: [[2 ** 31]] },
      "returned a wrong output 'y' (INT32): expected an integer in [-2^31, 2^31), got 2147483648",
    ],
    "another rank": [{ y: [1] }, "returned a wrong output 'y': expected shape [-1,1], got [1]"],
    "another fixed dimension": [
      { y: [[1, 2]] },
      "returned a wrong output 'y': expected shape [-1,1], got [1,2]",
    ],
    "too few rows": [{ y: [] }, "returned a wrong output 'y': expected shape [-1,1], got [0]"],
  };
  for (const [name, [result, message]] of Object.entries(cases)) {
    it(`${name}: the error names the declared and the returned value`, async () => {
      expect(
        await outcomeOf(
          echo(
            bindReturning(() => result),
            1,
          ),
        ),
      ).toBe(`INTERNAL model 'm' ${message}`);
    });
  }
});
