import { copyFile, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Triton, TritonError } from "@tritonjs/core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";
import type { Client, NamedTensor } from "./clients/client.js";
import { openClients } from "./clients/open-clients.js";
import { differenceOf } from "./onnx-data/compare-tensors.js";
import {
  type ConformanceModel,
  conformanceModels,
  type DataSet,
  dataSets,
  hasConformanceData,
} from "./onnx-data/conformance-models.js";
import { KNOWN_FAILURES } from "./onnx-data/known-failures.js";

const models = hasConformanceData ? conformanceModels() : [];
const skipped = hasConformanceData ? "" : " (skipped: Debian's package libonnx-testdata is not installed)";

/** Models that are loaded at a time. */
const AT_A_TIME = 4;

let repository: RepositoryOnDisk;
let triton: Triton;
let clients: readonly Client[] = [];

beforeAll(async () => {
  repository = await RepositoryOnDisk.create({});
  const logger = { error() {}, warn() {}, info() {}, debug() {} };
  triton = new Triton({
    modelRepository: repository.path,
    modelControlMode: "explicit",
    httpPort: 0,
    grpcPort: 0,
    metricsPort: 0,
    logger,
  });
  const all = openClients(triton, await triton.serve());
  clients = all.filter(({ way }) => way === "HTTP binary" || way === "gRPC raw");
});

afterAll(async () => {
  for (const client of clients) client.close();
  await triton.close();
  await repository[Symbol.asyncDispose]();
});

/** Serves a model and compares its answers over both protocols. @returns what is wrong; undefined for nothing */
async function faultOf(model: ConformanceModel): Promise<string | undefined> {
  const { name, directory } = model;
  const sets = await dataSets(model);
  if (sets.some(({ inputs, outputs }) => [...inputs, ...outputs].includes(undefined))) return "type";
  const folder = join(repository.path, name);
  await mkdir(join(folder, "1"), { recursive: true });
  await copyFile(join(directory, "model.onnx"), join(folder, "1", "model.onnx"));
  await writeFile(
    join(folder, "config.pbtxt"),
    'backend: "onnxruntime" instance_group [ { count: 1 kind: KIND_CPU } ]',
  );
  try {
    await triton.loadModel(name);
    for (const set of sets) {
      for (const client of clients) {
        const fault = await faultOfRun(client, name, set);
        if (fault !== undefined) return `${client.way}: ${fault}`;
      }
    }
    return undefined;
  } catch (error) {
    return TritonError.from(error).message;
  } finally {
    await triton.unloadModel(name).catch(() => {});
    await rm(folder, { recursive: true });
  }
}

async function faultOfRun(client: Client, model: string, set: DataSet): Promise<string | undefined> {
  const { inputs, outputs } = triton.service.modelMetadata(model, "");
  const named = (tensors: DataSet["inputs"], names: readonly string[]): NamedTensor[] =>
    tensors.map((tensor, i) => {
      const { name, shape } = tensor!;
      return { ...tensor!, name: names.includes(name) ? name : names[i]!, shape };
    });
  const sent = named(
    set.inputs,
    inputs.map(({ name }) => name),
  );
  const answer = await client.infer({
    model,
    inputs: sent.map((tensor) => ({ ...tensor, shape: tensor.shape.length === 0 ? [1] : tensor.shape })),
  });
  for (const expected of named(
    set.outputs,
    outputs.map(({ name }) => name),
  )) {
    const fault = differenceOf(
      expected,
      answer.outputs.find(({ name }) => name === expected.name),
    );
    if (fault !== undefined) return fault;
  }
  return undefined;
}

it.skipIf(!hasConformanceData)(
  `ONNX's own conformance models answer as ONNX says, over both protocols${skipped}`,
  async () => {
    const faults = new Map<string, string>();
    const rest = models.values();
    const work = async () => {
      for (const model of rest) {
        const fault = await faultOf(model);
        if (fault !== undefined) faults.set(model.name, fault);
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, work));
    const unexpected = [...faults].filter(
      ([name, fault]) =>
        !KNOWN_FAILURES.some((known) => known.models.includes(name) && known.fault.test(fault)),
    );
    expect(unexpected).toEqual([]);
    const expected = KNOWN_FAILURES.filter(({ dependsOnMachine }) => !dependsOnMachine).flatMap(
      ({ models }) => models,
    );
    expect(expected.filter((name) => !faults.has(name))).toEqual([]);
    expect(models.length - faults.size).toBeGreaterThan(900);
  },
  1_200_000,
);
