import { batch, Triton } from "@tritonjs/core";

/*
 * Lists of any length in one batch, without padding: their elements lie behind each other.
 *
 *   npm start
 */

await using triton = new Triton();
const sums = triton.bind({
  modelName: "sums",
  inputs: [
    { name: "x", dtype: "FP32", shape: [-1], allowRaggedBatch: true },
    {
      // The server makes this input: where the list of each request ends.
      name: "ends",
      dtype: "INT32",
      shape: [1],
      batchInput: { kind: "BATCH_ACCUMULATED_ELEMENT_COUNT", sourceInput: "x" },
    },
  ],
  outputs: [{ name: "sum", dtype: "FP32", shape: [1] }],
  inferFunc: batch(({ x, ends }) => {
    console.log(`elements ${x.data.join(" ")}, ends ${ends.data.join(" ")}`);
    let start = 0;
    const rows = Array.from(ends.data, (end) => {
      const row = x.data.subarray(start, end);
      start = end;
      return row;
    });
    return { sum: rows.map((row) => [row.reduce((sum, value) => sum + value, 0)]) };
  }),
  config: { maxBatchSize: 8 },
});

const lists = [[1, 2, 3], [10], [4, 4]];
const answers = await Promise.all(lists.map((x) => sums.inferSample({ x })));
for (const [i, { sum }] of answers.entries()) console.log(`${lists[i]!.join(" + ")} = ${sum.get(0)}`);
console.log(`executions: ${sums.statistics().executionCount}`);
