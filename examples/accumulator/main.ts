/* Three clients at once sum numbers from request to request, over HTTP. */
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { bindAccumulator, bindOnnxAccumulator } from "./models.js";

await using triton = new Triton();
bindAccumulator(triton);
bindOnnxAccumulator(triton);
const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });

/** Sends one request of a sequence, over HTTP as any client does. */
async function add(model: string, id: number, value: number, flags: object = {}): Promise<number> {
  const answer = await fetch(`${addresses.http!.url}/v2/models/${model}/infer`, {
    method: "POST",
    body: JSON.stringify({
      parameters: { sequence_id: id, ...flags },
      inputs: [{ name: "x", datatype: "FP32", shape: [1, 1], data: [value] }],
    }),
  });
  const body = (await answer.json()) as { outputs?: { data: number[] }[]; error?: string };
  if (body.outputs === undefined) throw new Error(body.error);
  return body.outputs[0]!.data[0]!;
}

async function sumUp(model: string, id: number, values: readonly number[]): Promise<number> {
  let sum = 0;
  for (const [i, value] of values.entries()) {
    const flags = { sequence_start: i === 0, sequence_end: i === values.length - 1 };
    sum = await add(model, id, value, flags);
  }
  return sum;
}

for (const model of ["accumulator", "accumulator-onnx"]) {
  const sums = await Promise.all([
    sumUp(model, 1, [1, 2, 3]),
    sumUp(model, 2, [10, 20, 30]),
    sumUp(model, 3, [0.5, 0.25]),
  ]);
  console.log(`${model}: ${sums.join(", ")}`);
}
console.log(await add("accumulator", 4, 1).catch((error: Error) => error.message));
