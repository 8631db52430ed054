import { type ModelHandle, sample, type Triton, TritonError } from "@tritonjs/core";

const inputs = [{ name: "x", dtype: "FP64", shape: [1] }] as const;
const outputs = [{ name: "root", dtype: "FP64", shape: [1] }] as const;

export type RootHandle = ModelHandle<typeof inputs, typeof outputs>;

/** Binds a model of square roots. It knows no root of 0, and breaks for negative numbers. */
export function bindRoot(triton: Triton): RootHandle {
  return triton.bind({
    modelName: "root",
    inputs,
    outputs,
    inferFunc: sample(({ x }) => {
      if (x.get(0) === 0) throw new TritonError("NOT_FOUND", "there is no root of 0");
      if (x.get(0) < 0) throw new RangeError("the callback is broken");
      return { root: [Math.sqrt(x.get(0))] };
    }),
  });
}

/** The root of the numbers in a path. A path with several numbers has the wrong shape. */
export async function rootOf(handle: RootHandle, numbers: string): Promise<{ root: number }> {
  const { root } = await handle.inferSample({ x: numbers.split(",").map(Number) });
  return { root: root.data[0]! };
}

/** Paths of an answer, a wrong shape, a thing that is not found, and a broken callback. */
const PATHS = ["4", "1,2", "0", "-1"];

/** The statuses that an application answers to these paths. */
export const STATUSES = [200, 400, 404, 500];

/** Status and text of the answer to each path. */
export function answersOf(url: string): Promise<{ readonly status: number; readonly text: string }[]> {
  return Promise.all(
    PATHS.map(async (path) => {
      const response = await fetch(`${url}/root/${path}`);
      return { status: response.status, text: await response.text() };
    }),
  );
}
