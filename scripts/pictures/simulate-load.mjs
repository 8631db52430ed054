import { Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";

/**
 * Sends Poisson arrivals to a model on a virtual clock, and returns the latencies in milliseconds.
 *
 * @param load.perSecond requests a second
 * @param load.count number of requests
 * @param load.values how many different inputs the requests have; each its own unless given
 * @param model.durationMs time of a batch by its rows
 */
export async function simulateLoad(
  { perSecond, count, values = count },
  { durationMs, config, options = {} },
) {
  const clock = new VirtualClock();
  let state = 1;
  // A linear congruential generator, so that each drawing is the same.
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const triton = new Triton({ clock, ...options });
  const model = triton.bind({
    modelName: "m",
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: (requests) => {
      const results = requests.map(({ inputs }) => ({ y: inputs.x }));
      return new Promise((resolve) => clock.setTimer(durationMs(requests.length), () => resolve(results)));
    },
    config,
  });
  await triton.ready();
  const latencies = [];
  for (let i = 0; i < count; i++) {
    await clock.advance((-Math.log(1 - random()) * 1000) / perSecond);
    const sent = clock.now();
    const x = Math.floor(random() * values);
    void model.inferSample({ x: [x] }).then(() => latencies.push(clock.now() - sent));
  }
  await clock.advance(60_000);
  await triton.close();
  if (latencies.length !== count) throw new Error(`expected ${count} answers, got ${latencies.length}`);
  return latencies;
}

export const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
