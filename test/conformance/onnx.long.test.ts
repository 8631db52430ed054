import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type OnnxEngine, onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Tensor, Triton, TritonError } from "@tritonjs/core";
import { type Elements, typedArrayFor } from "@tritonjs/protocol";
import { repository as withRepository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SessionData } from "../../packages/backends/src/onnxruntime/onnx-options.js";
import { openSessionOf } from "../../packages/backends/src/onnxruntime/ort-session.js";
import { fromResults, toFeeds } from "../../packages/backends/src/onnxruntime/ort-tensors.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";
import { sendRequest } from "../support/send-request.js";
import type { Client, NamedTensor, Way } from "./clients/client.js";
import { openClients } from "./clients/open-clients.js";
import { onnxCases } from "./onnx-cases.js";
import { differenceOf } from "./onnx-data/compare-tensors.js";
import {
  type ConformanceModel,
  conformanceModels,
  type DataSet,
  dataSets,
  hasConformanceData,
} from "./onnx-data/conformance-models.js";
import { float16ToNumber } from "./onnx-data/half.js";
import { KNOWN_FAILURES } from "./onnx-data/known-failures.js";

describe("data of ONNX models", () => {
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
      httpPort: 0,
      grpcPort: 0,
      metricsPort: 0,
      logger,
      extensions: [withRepository({ modelRepository: repository.path, modelControlMode: "explicit" })],
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
    const { inputs, outputs } = serviceOf(triton).modelMetadata(model, "");
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
});

const skipped = hasConformanceData ? "" : " (skipped: Debian's package libonnx-testdata is not installed)";

/** What a model answers to its data sets on an engine: bytes of all outputs, or the error. */
async function answersOf(model: ConformanceModel, engine: OnnxEngine, sets: readonly NamedTensor[][]) {
  const triton = new Triton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
  try {
    const file = await readFile(join(model.directory, "model.onnx"));
    const handle = triton.bind({
      modelName: "m",
      inferFunc: onnxruntime({ model: file, engine, intraOpNumThreads: 1 }),
      config: { maxBatchSize: 0 },
    });
    await handle.ready();
    const names = handle.metadata().inputs.map(({ name }) => name);
    const answers: unknown[] = [];
    for (const set of sets) {
      const inputs = new Map(
        set.map(({ name, datatype, shape, elements }, i) => {
          const typed = datatype === "BYTES" ? elements : new (typedArrayFor(datatype))(elements as never);
          return [
            names.includes(name) ? name : names[i]!,
            Tensor.fromElements(datatype, shape, typed as Elements),
          ];
        }),
      );
      answers.push(await bytesOf(triton, inputs));
    }
    return answers;
  } catch (error) {
    return TritonError.from(error).code;
  } finally {
    await triton.close();
  }
}

function bytesOf(triton: Triton, inputs: ReadonlyMap<string, Tensor>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    sendRequest(serviceOf(triton).model("m", ""), { inputs }, (outcome) => {
      if (outcome instanceof Error) reject(outcome);
      else
        resolve(
          [...outcome!.outputs].map(([name, { datatype, shape, bytes }]) => [
            name,
            datatype,
            shape,
            Buffer.from(bytes).toString("base64"),
          ]),
        );
    });
  });
}

describe("engines of ONNX models", () => {
  it.skipIf(!hasConformanceData)(
    `both engines answer ONNX's conformance data alike, bit for bit${skipped}`,
    async () => {
      const different: unknown[] = [];
      let compared = 0;
      for (const model of conformanceModels()) {
        const sets = (await dataSets(model)).map(({ inputs }) => inputs);
        // onnxruntime-node cannot pass tensors of bfloat16.
        if (sets.flat().includes(undefined) || model.name.includes("BFLOAT16")) continue;
        const [worker, native] = await Promise.all(
          (["worker", "native"] as const).map((engine) => answersOf(model, engine, sets as NamedTensor[][])),
        );
        if (JSON.stringify(worker) === JSON.stringify(native)) compared += Array.isArray(worker) ? 1 : 0;
        else different.push({ model: model.name, worker, native });
      }
      expect(different).toEqual([]);
      expect(compared).toBeGreaterThan(900);
    },
    1_200_000,
  );
});

describe("operators of ONNX", () => {
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
    triton = new Triton({
      httpPort: 0,
      grpcPort: 0,
      metricsPort: 0,
      extensions: [withRepository({ modelRepository: models.path })],
    });
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
});

/** Distance at which two numbers are the same result: absolute below 1, relative above. */
const TOLERANCE = 1e-5;

type Outputs = ReadonlyMap<string, Tensor>;

/** Outputs of a model for each of its data sets, in a session as workers open it; undefined if it cannot run. */
async function outputsOf(
  { directory }: ConformanceModel,
  sets: readonly NamedTensor[][],
  isWasm: boolean,
): Promise<Outputs[] | undefined> {
  const data: SessionData = {
    isWasm,
    model: `${directory}/model.onnx`,
    providers: ["cpu"],
    strict: true,
    sessionOptions: { intraOpNumThreads: 1, logSeverityLevel: 4 },
    scalars: [],
    ranksUnknown: [],
    native: {},
  };
  const outputs: Outputs[] = [];
  try {
    const { session } = await openSessionOf(data, () => {});
    for (const set of sets) {
      const inputs = set.map(({ name, datatype, shape, elements }, i) => {
        const typed = datatype === "BYTES" ? elements : new (typedArrayFor(datatype))(elements as never);
        const tensor = Tensor.fromElements(datatype, shape, typed as Elements);
        return [session.inputNames.includes(name) ? name : session.inputNames[i]!, tensor] as const;
      });
      outputs.push(fromResults(await session.run(toFeeds(new Map(inputs), new Set()))));
    }
    await session.release();
  } catch {
    return undefined;
  }
  return outputs;
}

function areClose(one: Outputs, other: Outputs | undefined): boolean {
  return [...one].every(([name, tensor]) => {
    const { datatype, shape, bytes } = other?.get(name) ?? tensor;
    if (other?.get(name) === undefined || datatype !== tensor.datatype) return false;
    if (String(shape) !== String(tensor.shape)) return false;
    if (Buffer.compare(bytes, tensor.bytes) === 0) return true;
    if (!datatype.startsWith("FP")) return false;
    const [left, right] = [tensor, other.get(name)!].map(({ elements }) =>
      Array.from(elements as Float32Array, (value) => (datatype === "FP16" ? float16ToNumber(value) : value)),
    ) as [number[], number[]];
    return left.every((a, i) => {
      const b = right[i]!;
      return Object.is(a, b) || a === b || Math.abs(a - b) <= TOLERANCE * Math.max(1, Math.abs(a));
    });
  });
}

describe("ONNX models in WebAssembly", () => {
  it.skipIf(!hasConformanceData)(
    `WebAssembly answers ONNX's conformance data as the native library does, to 1e-5${skipped}`,
    async () => {
      let native = 0;
      const different: string[] = [];
      for (const model of conformanceModels()) {
        const sets = (await dataSets(model)).map(({ inputs }) => inputs);
        // onnxruntime-node cannot pass tensors of bfloat16.
        if (sets.flat().includes(undefined) || model.name.includes("BFLOAT16")) continue;
        const expected = await outputsOf(model, sets as NamedTensor[][], false);
        if (expected === undefined) continue;
        native++;
        const got = await outputsOf(model, sets as NamedTensor[][], true);
        if (!expected.every((outputs, i) => areClose(outputs, got?.[i]))) different.push(model.name);
      }
      expect(native).toBeGreaterThan(950);
      // Random numbers, and sums of many numbers in another order.
      expect(
        different.filter((name) => !/bernoulli|training_dropout|NCd1d2d3d4d5_mean_weight/.test(name)),
      ).toEqual([]);
      expect(native - different.length).toBeGreaterThan(900);
    },
    600_000,
  );
});
