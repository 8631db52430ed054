import { batch, type InferOptions, type ModelHandle, Triton } from "@tritonjs/core";
import { afterEach, describe, expect, it } from "vitest";

const inputs = [{ name: "x", dtype: "INT32", shape: [1] }] as const;
const outputs = [{ name: "y", dtype: "INT32", shape: [1] }] as const;
type Handle = ModelHandle<typeof inputs, typeof outputs>;

let triton: Triton;
afterEach(() => triton.close());

async function next(handle: Handle, value: number, options: InferOptions): Promise<number> {
  const { y } = await handle.inferSample({ x: [value] }, options);
  return y.data[0]!;
}

describe("the callback of a sequence model", () => {
  it("sees ids, flags and control tensors, and null requests in the direct strategy", async () => {
    triton = new Triton();
    const seen: unknown[] = [];
    const handle: Handle = triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: (requests) => {
        seen.push(
          ...requests.map(({ inputs: given, correlationId, sequenceStart, sequenceEnd, ready }) => ({
            tensors: Object.entries(given).map(([name, array]) => [name, ...array.data]),
            about: [correlationId, sequenceStart, sequenceEnd, ready],
          })),
        );
        return requests.map(({ inputs: { x } }) => ({ y: x }));
      },
      config: {
        sequence: {
          strategy: "direct",
          controls: { start: "START", end: "END", ready: "READY", correlationId: { name: "ID" } },
        },
      },
    });
    await next(handle, 5, { sequence: { id: 1, start: true } });
    await next(handle, 6, { sequence: { id: 2, start: true, end: true } });
    const tensors = (x: number, start: number, end: number, ready: number, id: bigint) =>
      [["x", x], ["START", start], ["END", end], ["READY", ready], ["ID", id]]; // biome-ignore format: a table
    expect(seen).toEqual([
      { tensors: tensors(5, 1, 0, 1, 1n), about: [1n, true, false, true] },
      { tensors: tensors(0, 0, 0, 0, 0n), about: [undefined, false, false, false] },
      { tensors: tensors(6, 1, 1, 1, 2n), about: [2n, true, true, true] },
    ]);
  });

  it("made with batch() gets the rows of null requests too, and their results are dropped", async () => {
    triton = new Triton();
    const rows: number[][] = [];
    const handle: Handle = triton.bind({
      modelName: "m",
      inputs,
      outputs,
      inferFunc: batch(({ x }) => {
        rows.push([...x.data]);
        return { y: x };
      }),
      config: { sequence: { strategy: "direct" } },
    });
    await next(handle, 1, { sequence: { id: 1, start: true } });
    expect(await next(handle, 2, { sequence: { id: 2, start: true } })).toBe(2);
    expect(rows).toEqual([[1], [0, 2]]);
    expect(handle.statistics().inferenceCount).toBe(2);
  });
});
