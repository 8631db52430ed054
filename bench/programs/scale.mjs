/* Measures the cost of a request with many models, many queued requests, or many instances. */

import { serviceOf } from "@tritonjs/server";
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree } = programOptions();
/** Requests in one batch. */
const AT_A_TIME = 64;
/** Requests in one measurement. Their garbage is collected before the next one. */
const MANY = 20_000;
/** Warm-up requests, until V8 has compiled the code. */
const WARM_UP = 100_000;

const { batch, Tensor, Triton } = await importOf(tree, "core");
const { Exchange } = await importOf(tree, "core", "frontend");

const io = (name) => [{ name, dtype: "FP32", shape: [4] }];
/** CPU time of this process in microseconds. Other work on the machine affects it less than wall-clock time. */
const cpuMicroseconds = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

/** Cost of the measurement itself, which is large compared with ten requests. */
const LOOK_MICROSECONDS = (() => {
  const start = cpuMicroseconds();
  for (let i = 1; i < 10_000; i++) cpuMicroseconds();
  return (cpuMicroseconds() - start) / 10_000;
})();

const turn = () => new Promise((resolve) => setImmediate(resolve));

const triton = new Triton();
let bound = 0;
/** One Triton with the given number of models. */
async function bindModels(count) {
  for (; bound < count; bound++) {
    triton.bind({
      modelName: `model-${bound}`,
      inputs: io("x"),
      outputs: io("y"),
      inferFunc: batch(({ x }) => ({ y: x })),
      config: { maxBatchSize: AT_A_TIME },
    });
  }
  await triton.ready();
  await requestCost(WARM_UP);
}

const rowOf = () => new Map([["x", Tensor.fromElements("FP32", [1, 4], new Float32Array(4))]]);

/** One request by name, through the look-up of the service. */
const ask = (modelName) =>
  new Promise((resolve, reject) => {
    const respond = (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome));
    const service = serviceOf(triton);
    const exchange = new Exchange(service, undefined, service.model(modelName, ""));
    exchange.send({ inputs: rowOf() }, { respond, refuse: reject });
  });

/**
 * Microseconds of a request, 64 at a time: to one model in the middle, and to all of them in turn. In turn, nothing of
 * a model is in the processor's caches when its turn comes.
 */
async function requestCost(requests = 40_000) {
  const measure = async (nameOf) => {
    const start = cpuMicroseconds();
    for (let round = 0; round < requests / AT_A_TIME; round++) {
      await Promise.all(Array.from({ length: AT_A_TIME }, () => ask(nameOf(round))));
    }
    return (cpuMicroseconds() - start) / requests;
  };
  return {
    "request to one": await measure(() => `model-${bound >> 1}`),
    "request to all in turn": await measure((round) => `model-${(round * 7919) % bound}`),
  };
}

let release = () => {};
const other = new Triton();
const busy = other.bind({
  modelName: "busy",
  inputs: io("x"),
  outputs: io("y"),
  inferFunc: async (requests) => {
    await new Promise((resolve) => (release = resolve));
    return requests.map(({ inputs }) => ({ y: inputs.x }));
  },
  config: {
    maxBatchSize: 64,
    batcher: { defaultQueuePolicy: { defaultTimeoutMicroseconds: 3_600_000_000 } },
  },
});

/** Microseconds to enter a queue of `count` requests, to leave it one by one, and to be cancelled in it. */
async function queueCost(count) {
  await busy.ready();
  let answered = 0;
  const sink = { respond: () => void answered++, refuse: () => void answered++ };
  // The caller's tensors are made before, so that only the cost of the library is measured.
  const rows = Array.from({ length: count }, rowOf);
  const send = (_, i) => {
    const exchange = new Exchange(serviceOf(other), undefined, serviceOf(other).model("busy", ""));
    exchange.send({ inputs: rows[i] }, sink);
    return exchange;
  };
  const micros = (since) => (cpuMicroseconds() - since - LOOK_MICROSECONDS) / count;
  // Occupy the instance.
  send(undefined, 0);
  await turn();
  await turn();
  const rounds = Math.max(1, Math.ceil(MANY / count));
  const tidy = () => {
    if (count >= MANY) globalThis.gc();
  };
  const sums = { enqueue: 0, cancel: 0, dequeue: 0 };
  for (let round = 0; round < rounds; round++) {
    tidy();
    let start = cpuMicroseconds();
    const requests = Array.from({ length: count }, send);
    sums.enqueue += micros(start);
    // Cancel in steps of 7919, so that requests are not cancelled in their order.
    start = cpuMicroseconds();
    for (let i = 0; i < count; i++) requests[(i * 7919) % count].cancel();
    sums.cancel += micros(start);
    tidy();
    answered = 0;
    for (let i = 0; i < count; i++) send(undefined, i);
    start = cpuMicroseconds();
    while (answered < count) {
      release();
      await turn();
    }
    sums.dequeue += micros(start);
    send(undefined, 0);
    await turn();
    await turn();
  }
  release();
  await turn();
  return Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, sum / rounds]));
}

/**
 * Microseconds of a request with the given number of instances of a callback that waits for a turn of the event loop.
 */
async function instanceCost(count, requests = 20_000) {
  const many = new Triton();
  const model = many.bind({
    modelName: "many",
    inputs: io("x"),
    outputs: io("y"),
    inferFunc: batch(async ({ x }) => {
      await turn();
      return { y: x };
    }),
    config: { maxBatchSize: 8, instanceGroup: { count } },
  });
  await model.ready();
  const x = new Float32Array(4);
  const ask = async (from, to) => {
    for (let i = from; i < to; i++) await model.inferSample({ x });
  };
  const each = requests / 64;
  await Promise.all(Array.from({ length: 64 }, () => ask(0, each / 4)));
  const start = cpuMicroseconds();
  await Promise.all(Array.from({ length: 64 }, () => ask(0, each)));
  const micros = (cpuMicroseconds() - start) / requests;
  await many.close();
  return micros;
}

answerCalls({ bindModels, requestCost, queueCost, instanceCost });
