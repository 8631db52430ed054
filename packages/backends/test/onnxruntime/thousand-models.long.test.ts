import { Triton } from "@tritonjs/core";
import { modelsOnDemand } from "@tritonjs/operations/on-demand";
import { repository as withRepository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const MODELS = 1000;
const BUDGET_MB = 800;
const MB = 2 ** 20;

/** A model that returns its input times its number, with 16 KB of further weights. */
function model(number: number): Uint8Array {
  const zeros = { name: "z", dims: [64, 64], data: new Float32Array(64 * 64) };
  return onnxModel({
    name: `m${number}`,
    opset: 13,
    inputs: [{ name: "x", elemType: "FLOAT", dims: ["batch", 64] }],
    outputs: [{ name: "y", elemType: "FLOAT", dims: ["batch", 64] }],
    nodes: [
      { op: "MatMul", inputs: ["x", "z"], outputs: ["nothing"] },
      { op: "Mul", inputs: ["x", "by"], outputs: ["product"] },
      { op: "Add", inputs: ["product", "nothing"], outputs: ["y"] },
    ],
    initializers: [zeros, { name: "by", dims: [1], data: Float32Array.of(number) }],
  });
}

let repository: RepositoryOnDisk;
let triton: Triton;
let rssBefore = 0;
let mostRss = 0;

beforeAll(async () => {
  const files = Array.from({ length: MODELS }, (_, i) => [`m${i}/1/model.onnx`, model(i)] as const);
  repository = await RepositoryOnDisk.create(Object.fromEntries(files));
  rssBefore = process.memoryUsage.rss();
  triton = new Triton({
    logger: { error() {}, warn() {}, info() {}, debug() {} },
    extensions: [
      withRepository({ modelRepository: repository.path }),
      modelsOnDemand({ loadOnDemand: true, modelMemoryBudgetMb: BUDGET_MB }),
    ],
  });
  await triton.ready();
});

afterAll(async () => {
  await triton.close();
  await repository[Symbol.asyncDispose]();
});

async function ask(number: number): Promise<number> {
  const { y } = await triton.infer(`m${number}`, { x: [new Float32Array(64).fill(2)] });
  mostRss = Math.max(mostRss, process.memoryUsage.rss());
  return Number(y!.data[63]);
}

const page = async () => await triton.metrics.metrics();
const sumOf = (text: string, metric: string) =>
  text
    .split("\n")
    .filter((line) => line.startsWith(metric))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);

describe("1,000 ONNX models in a memory budget", () => {
  it("starts with all of them on disk only", async () => {
    const index = await serviceOf(triton).repositoryIndex(true);
    expect(index).toHaveLength(MODELS);
    expect(index.filter(({ reason }) => reason?.startsWith("on disk only"))).toHaveLength(MODELS);
  });

  it("answers each of them, within 1 GB of memory", async () => {
    for (let i = 0; i < MODELS; i++) expect(await ask(i)).toBe(2 * i);
    expect((mostRss - rssBefore) / MB).toBeLessThan(1024);
  });

  it("loses no request while few models get most of them, from many callers", async () => {
    const before = await page();
    let left = 4000;
    let state = 1;
    const random = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };
    const caller = async () => {
      while (left-- > 0) {
        // Half of all requests are for 32 of the models.
        const number = Math.floor(MODELS ** random()) - 1;
        expect(await ask(number)).toBe(2 * number);
      }
    };
    await Promise.all(Array.from({ length: 16 }, caller));
    const after = await page();
    const loads = sumOf(after, "tritonjs_model_loads_total") - sumOf(before, "tritonjs_model_loads_total");
    expect(loads).toBeLessThan(2400);
    expect(sumOf(after, "tritonjs_model_memory_bytes")).toBeLessThanOrEqual(BUDGET_MB * MB);
    expect(sumOf(after, "nv_inference_request_failure")).toBe(0);
    expect((mostRss - rssBefore) / MB).toBeLessThan(1024);
  });
});
