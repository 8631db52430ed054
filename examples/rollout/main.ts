import { batch, Triton } from "@tritonjs/core";
import { type RolloutEvent, type RolloutOptions, rollouts } from "@tritonjs/operations/rollout";
import { VirtualClock } from "@tritonjs/testing";

/*
 * Two releases of a model that tells whether a review is friendly. Version 2 has a fault: it changes its mind about 2% of
 * the reviews. Version 3 is sound. The clock is a virtual one, so a day of traffic takes seconds.
 */

const clock = new VirtualClock();
const updates = rollouts();
await using triton = new Triton({ clock, logWarning: false, extensions: [updates] });
let state = 42;
const random = () => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 2 ** 32;
};

for (const modelVersion of [1, 2, 3]) {
  triton.bind({
    modelName: "reviews",
    modelVersion,
    inputs: [{ name: "stars", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "scores", dtype: "FP32", shape: [2] }],
    inferFunc: batch(({ stars }) => {
      const rows = Array.from(stars.data, (value) => {
        const planted = modelVersion === 2 && random() < 0.02;
        return value > 3 !== planted ? [0.1, 0.9] : [0.8, 0.2];
      });
      return { scores: rows };
    }),
    config: { maxBatchSize: 8 },
  });
}
await triton.ready();

const options = {
  key: "parameter:user",
  // No user gets the new version before it has answered copies of the requests for an hour.
  steps: [
    { share: 0, forSeconds: 3600 },
    { share: 10, forSeconds: 3600 },
    { share: 50, forSeconds: 7200 },
  ],
  shadow: { every: 1, maxLoad: 100 },
  verdict: { agreement: { by: "class" } },
  seed: 1,
} satisfies Partial<RolloutOptions>;

let sent = 0;
const show = ({ type, reason, rollout }: RolloutEvent) =>
  console.log(
    `${type} after ${sent} requests: version ${rollout.to} gets ${rollout.share}%\n  ${reason || "no fault"}`,
  );

/** One request each five seconds, until the rollout is over. */
async function release(to: number): Promise<void> {
  sent = 0;
  const rollout = await updates.start("reviews", { ...options, from: 1, to });
  rollout.onEvent(show);
  while (rollout.state === "running") {
    const user = `user ${Math.floor(random() * 500)}`;
    const answer = triton.infer("reviews", { stars: [[1 + 4 * random()]] }, { parameters: { user } });
    sent++;
    await clock.advance(5000);
    await answer;
  }
  const { decision, agreement, shadow } = rollout.verdict();
  console.log(`${decision}: ${agreement[0]?.disagreements} of ${shadow.answered} compared answers disagree`);
}

await release(2);
await release(3);
