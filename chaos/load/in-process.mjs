import { now } from "../clock.mjs";
import { WrongAnswer } from "../oracle/journal.mjs";
import { SeededRandom } from "../random.mjs";
import { checkEqual, checkMultiples, row } from "./values.mjs";

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Requests in process to the bound models, from a few loops.
 *
 * @param report gets a message for each request that has ended
 */
export function inProcessTraffic({ models, seed, isError, report }) {
  const random = new SeededRandom(seed).fork("in process");
  let stopped = true;
  let loops = [];

  const send = async (model, attempt, since) => {
    const started = now();
    const about = { type: "ended", protocol: "in process", server: "program", model, since };
    const times = () => ({ startedAt: started, endedAt: now() });
    try {
      await attempt();
      report({ ...about, ...times(), end: "right" });
      return true;
    } catch (error) {
      const { message, stack } = error;
      const shown = isError(error)
        ? { code: error.code, reason: error.reason, message }
        : { isWrong: error instanceof WrongAnswer, message, stack };
      report({ ...about, ...times(), error: shown });
      return false;
    }
  };

  const double = (name) => () =>
    send(name, async () => {
      // Few different inputs, so that the cache has most of them.
      const x =
        name === "cached" ? Float32Array.of(random.between(0, 200)) : row(random, random.between(1, 64));
      const { y } = await models[name].inferSample({ x });
      checkMultiples(x, 2, y.data);
    });

  const count = () =>
    send("count", async () => {
      const limit = random.between(0, 20);
      let next = 0;
      for await (const { y } of models.count.stream({ x: [limit] })) checkEqual(y.get(0), next++, "response");
      checkEqual(next, limit, "number of responses");
    });

  const sequence = async () => {
    const id = BigInt(random.between(1, 2 ** 47));
    const since = now();
    const length = random.between(2, 8);
    let sum = 0;
    for (let i = 0; i < length; i++) {
      const value = random.between(0, 1000);
      sum += value;
      const isRight = await send(
        "total",
        async () => {
          const options = { sequence: { id, start: i === 0, end: i === length - 1 } };
          const { y } = await models.total.inferSample({ x: [value] }, options);
          checkEqual(y.get(0), sum, "sum of the sequence");
        },
        since,
      );
      // The state of a failed sequence is lost. Another one starts.
      if (!isRight) return;
    }
  };

  const kinds = [...["inline", "thread", "process", "onnx", "cached"].map(double), count, sequence];

  return {
    start() {
      stopped = false;
      loops = kinds.map(async (step) => {
        while (!stopped) {
          await step();
          await pause(random.between(1, 30));
        }
      });
    },
    async stop() {
      stopped = true;
      await Promise.all(loops);
    },
  };
}
