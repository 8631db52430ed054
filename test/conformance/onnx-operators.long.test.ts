import { Triton } from "@tritonjs/core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";
import type { Client, Way } from "./clients/client.js";
import { openClients } from "./clients/open-clients.js";
import { onnxCases } from "./onnx-cases.js";

const ways: readonly Way[] = ["in process", "HTTP JSON", "HTTP binary", "gRPC raw", "gRPC typed"];
const withoutHalves: readonly Way[] = ["HTTP JSON", "gRPC typed"];

let models: RepositoryOnDisk;
let triton: Triton;
let clients: readonly Client[] = [];

beforeAll(async () => {
  const config = 'backend: "onnxruntime" instance_group [ { count: 1 kind: KIND_CPU } ]';
  models = await RepositoryOnDisk.create(
    Object.fromEntries(
      onnxCases.flatMap(({ model, file }) => [
        [`${model}/1/model.onnx`, file],
        [`${model}/config.pbtxt`, config],
      ]),
    ),
  );
  triton = new Triton({ modelRepository: models.path, httpPort: 0, grpcPort: 0, metricsPort: 0 });
  clients = openClients(triton, await triton.serve());
}, 300_000);

afterAll(async () => {
  for (const client of clients) client.close();
  await triton.close();
  await models[Symbol.asyncDispose]();
});

it.each(ways)("an ONNX graph of any operator and data type gives the right answer: %s", async (way) => {
  const client = clients.find((one) => one.way === way)!;
  const able = onnxCases.filter(
    ({ inputs, outputs }) =>
      !withoutHalves.includes(way) || [...inputs, ...outputs].every(({ datatype }) => datatype !== "FP16"),
  );
  const answers = await Promise.all(
    able.map(async ({ model, inputs }) => ({
      model,
      outputs: (await client.infer({ model, inputs })).outputs,
    })),
  );
  expect(answers).toEqual(able.map(({ model, outputs }) => ({ model, outputs })));
});
