import { TreeModel, trees } from "@tritonjs/backends/trees";
import { Triton } from "@tritonjs/core";

const model = new URL("../model/fraud.json", import.meta.url);
const NAMES = ["amount", "hour", "kilometres from home", "minutes since the last", "country"];

// Amount, hour, kilometres from home, minutes since the last payment, number of the country.
const payments = [
  [18.5, 12, 3, 840, 0],
  [640, 3, 900, 4, 5],
  [250, 23, Number.NaN, 60, 1],
];

await using triton = new Triton();
const fraud = triton.bind({
  modelName: "fraud",
  inferFunc: trees({ model, isClassifier: true, predictProba: true, treeShap: true }),
  config: { maxBatchSize: 256 },
});
const { inputs, outputs } = fraud.metadata();
for (const { name, shape } of [...inputs, ...outputs]) console.log(`${name} [${shape}]`);

// Payments of several clients, which the server batches.
const answers = await Promise.all(payments.map((payment) => fraud.inferSample({ input__0: payment })));
for (const [i, { output__0, treeshap_output }] of answers.entries()) {
  const parts = [...(treeshap_output!.data as Float32Array)].slice(0, NAMES.length);
  const reason = NAMES[parts.indexOf(Math.max(...parts))];
  console.log(`payment ${i + 1}: ${Number(output__0!.data[0]).toFixed(4)}, raised most by the ${reason}`);
}
const { inferenceCount, executionCount } = fraud.statistics();
console.log(`payments: ${inferenceCount}, batches: ${executionCount}`);

// Without a server: microseconds for a row.
const direct = new TreeModel({ model });
const [probability] = direct.predict(Float32Array.from(payments[1]!));
console.log(`called directly: ${probability!.toFixed(4)}`);
