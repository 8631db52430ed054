import { readFile } from "node:fs/promises";
import { serviceOf } from "@tritonjs/server";
import { expect, it, onTestFinished } from "vitest";
import { flowers, irisModel } from "../support/iris.js";
import { chainConfig, identityConfig, RepositoryOnDisk } from "../support/repository-on-disk.js";
import { openTriton, serveAndConnect } from "./support/open-triton.js";

const RELOADS = 5;

/** A configuration for one of the models, different in each round. */
const irisConfig = (round: number) =>
  `max_batch_size: ${16 + round} dynamic_batching { } instance_group [ { count: 1 kind: KIND_CPU } ]`;

it("reloading models and members of ensembles fails no request of any transport", async () => {
  const models = await RepositoryOnDisk.create({
    "iris/config.pbtxt": irisConfig(0),
    "iris/1/model.onnx": await readFile(irisModel),
    "echo/config.pbtxt": identityConfig(),
    "echo/1/": "",
    "chain/config.pbtxt": chainConfig("echo", "echo"),
    "chain/1/": "",
  });
  onTestFinished(() => models[Symbol.asyncDispose]());
  const triton = openTriton({
    modelRepository: models.path,
    modelControlMode: "explicit",
    loadModel: ["*"],
    logger: { error() {}, warn() {}, info() {}, debug() {} },
  });
  const clients = await serveAndConnect(triton);
  const calls = [
    {
      model: "iris",
      inputs: [{ name: "measurements", datatype: "FP32", shape: [1, 4], elements: flowers[0]! }],
    },
    { model: "chain", inputs: [{ name: "IN", datatype: "FP32", shape: [1, 2], elements: [1, 2] }] },
  ] as const;
  let over = false;
  const answered = clients.map(() => 0);
  const failures: string[] = [];
  const load = clients.flatMap((client, i) =>
    calls.map(async (call) => {
      while (!over) {
        await client.infer(call).then(
          () => void answered[i]!++,
          (error: Error) => void failures.push(`${call.model}: ${error.message}`),
        );
        // In-process calls alone would never let the event loop turn.
        await new Promise(setImmediate);
      }
    }),
  );
  try {
    for (let round = 1; round <= RELOADS; round++) {
      await models.write({
        "iris/config.pbtxt": irisConfig(round),
        "echo/config.pbtxt": identityConfig(`parameters { key: "round" value { string_value: "${round}" } }`),
      });
      await Promise.all([triton.loadModel("iris"), triton.loadModel("echo")]);
      expect(serviceOf(triton).modelConfig("iris", "").maxBatchSize).toBe(16 + round);
      expect(serviceOf(triton).modelConfig("echo", "").parameters.round?.stringValue).toBe(String(round));
    }
  } finally {
    over = true;
    await Promise.all(load);
  }
  expect(failures).toEqual([]);
  for (const count of answered) expect(count).toBeGreaterThan(0);
});
