import {
  batch,
  constantPadder,
  fillOptionals,
  firstValue,
  groupByKeys,
  groupByValues,
  Triton,
} from "@tritonjs/core";
import ndarray from "ndarray";

/*
 * A text generator whose clients may each send a temperature and a length. The model needs one temperature and one
 * length for all rows of a call, and decorators convert the requests. They are applied in the order written here.
 *
 *   npm start
 */

const withDefaults = fillOptionals({ temperature: [0.7], length: [2] }); // defaults for missing inputs
const eachSetting = groupByValues("temperature", "length", { padFn: constantPadder(-1) }); // a call for each pair of values
const asNumbers = firstValue("temperature", "length"); // numbers, not arrays with one for each row

await using triton = new Triton();
const generator = triton.bind({
  modelName: "generator",
  inputs: [
    { name: "prompt", dtype: "INT32", shape: [1] },
    { name: "temperature", dtype: "FP64", shape: [1], optional: true },
    { name: "length", dtype: "INT32", shape: [1], optional: true },
  ],
  outputs: [{ name: "tokens", dtype: "INT32", shape: [-1] }],
  inferFunc: withDefaults(
    groupByKeys(
      batch(
        eachSetting(
          asNumbers(({ prompt, temperature, length }) => {
            const rows = prompt.shape[0]!;
            console.log(`${rows} rows, temperature ${temperature}, length ${length}`);
            const tokens = ndarray(new Int32Array(rows * length), [rows, length]);
            for (let row = 0; row < rows; row++) {
              for (let i = 0; i < length; i++) {
                tokens.set(row, i, prompt.get(row, 0) + Math.round(i * temperature * 10));
              }
            }
            return { tokens };
          }),
        ),
      ),
    ),
  ),
  config: { maxBatchSize: 8 },
});

const { tokens } = await generator.infer({
  prompt: [[100], [200], [300]],
  temperature: [[0.5], [0.1], [0.5]],
  length: [[4], [2], [4]],
});
for (let row = 0; row < tokens.shape[0]!; row++)
  console.log([0, 1, 2, 3].map((i) => tokens.get(row, i)).join(" "));

const short = await generator.inferSample({ prompt: [7] });
console.log([...short.tokens.data].join(" "));
