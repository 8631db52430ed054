import { Triton } from "@tritonjs/core";

/** Milliseconds before a turn counts, and in which it counts. */
const WARM_MS = 100;
const TURN_MS = 400;

/**
 * Measures models of one repository in short turns, two rounds forwards and two backwards. The machine's speed changes
 * within seconds, so turns of one round are alike and rounds are not.
 *
 * @param concurrency requests in flight
 * @returns requests a second of each round by model
 */
export async function turnsOfModels(repository, names, { rounds, concurrency }) {
  const logger = { error: console.error, warn() {}, info() {}, debug() {} };
  const triton = new Triton({ modelRepository: repository, logger, allowGpuMetrics: false });
  try {
    await triton.ready();
    const rates = new Map(names.map((name) => [name, []]));
    for (let round = -1; round < rounds; round++) {
      for (const name of round & 2 ? names.toReversed() : names) {
        const rate = await turn(triton, name, concurrency);
        // The first round warms the program up.
        if (round >= 0) rates.get(name).push(rate);
      }
    }
    return rates;
  } finally {
    await triton.close();
  }
}

async function turn(triton, name, concurrency) {
  const { inputs } = triton.service.modelMetadata(name, "");
  const values = Object.fromEntries(inputs.map((input) => [input.name, randomRow(input.shape)]));
  const from = performance.now() + WARM_MS;
  const to = from + TURN_MS;
  let count = 0;
  const client = async () => {
    for (let now = 0; now < to; ) {
      await triton.infer(name, values);
      now = performance.now();
      if (now >= from && now < to) count++;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, client));
  return (1000 * count) / TURN_MS;
}

/** One row for the shape of an input, whose first dimension is the batch. */
function randomRow([, ...dims]) {
  return Float32Array.from({ length: dims.reduce((product, dim) => product * dim, 1) }, Math.random);
}
