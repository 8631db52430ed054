import { now } from "../now.mjs";
import { checkEqual } from "./values.mjs";

/** One sequence of requests to a model that adds up. After a failed step its state is lost, so it ends there. */
export async function sumSequence({ client, model, random, journal, about }) {
  const id = random.between(1, 2 ** 47);
  const length = random.between(2, 8);
  const since = now();
  let sum = 0;
  for (let i = 0; i < length; i++) {
    const value = random.between(0, 1000);
    sum += value;
    const isRight = await journal.record({ ...about, since }, async () => {
      const result = await client.infer(model, {
        inputs: { x: { datatype: "FP32", shape: [1, 1], data: Float32Array.of(value) } },
        sequence: { id, start: i === 0, end: i === length - 1 },
      });
      checkEqual(result.elements("y", "FP32")[0], sum, "sum of the sequence");
    });
    if (!isRight) return;
  }
}
