import { RESCHEDULE, sequenceState, Triton } from "@tritonjs/core";

/*
 * Requests that need different numbers of steps share the batches of a model. A request that is not done comes back
 * with the next batch.
 *
 *   npm start
 */

await using triton = new Triton();
const states = sequenceState(() => ({ value: 0, steps: 0 }));
const collatz = triton.bind({
  modelName: "collatz",
  inputs: [{ name: "start", dtype: "INT32", shape: [1] }],
  outputs: [{ name: "steps", dtype: "INT32", shape: [1] }],
  inferFunc: (requests) => {
    console.log(`a batch of ${requests.length}`);
    return requests.map(({ inputs: { start }, sequence }) => {
      const state = states(sequence);
      if (state.steps === 0) state.value = start.get(0, 0);
      state.steps++;
      state.value = state.value % 2 === 0 ? state.value / 2 : 3 * state.value + 1;
      return state.value > 1 ? RESCHEDULE : { steps: [[state.steps]] };
    });
  },
  config: { maxBatchSize: 8, sequence: { iterative: true } },
});
await collatz.ready();

const starts = [2, 3, 8, 5];
const answers = await Promise.all(starts.map((start) => collatz.inferSample({ start: [start] })));
for (const [i, { steps }] of answers.entries()) console.log(`${starts[i]}: ${steps.get(0)} steps`);
