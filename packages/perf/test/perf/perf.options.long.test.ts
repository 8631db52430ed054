import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sequenceState, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runCommand } from "../support/run-command.js";

let folder: string;
let triton: Triton;
const urls = { http: "", grpc: "" };

/** What the server saw since the start of the test. */
let headers: Headers[] = [];
let parameters: unknown[] = [];
let values: number[] = [];
/** The values of each request as text. */
let rows: string[] = [];
let strings: string[] = [];
let shapes: (readonly number[])[] = [];
let regionSizes: number[] = [];
let steps: { readonly id: number; readonly start: boolean; readonly end: boolean }[] = [];

beforeEach(() => {
  headers = [];
  parameters = [];
  values = [];
  rows = [];
  strings = [];
  shapes = [];
  regionSizes = [];
  steps = [];
});

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "perf-"));
  triton = new Triton({
    allowClientSharedMemory: true,
    exitTimeoutSecs: 0.1,
    security: {
      restrictedEndpoints: [],
      authenticate: ({ group, headers: sent }) => {
        if (group === "inference") headers.push(sent);
      },
    },
  });
  const output = { name: "y", dtype: "FP32", shape: [4] } as const;
  triton.bind({
    modelName: "probe",
    inputs: [
      { name: "x", dtype: "FP32", shape: [4] },
      { name: "s", dtype: "BYTES", shape: [2] },
    ],
    outputs: [output],
    inferFunc: (requests) =>
      requests.map(({ inputs: { x, s }, parameters: given }) => {
        parameters.push({ ...given });
        values.push(...x.data);
        rows.push(`${[...x.data]} ${s.strings()}`);
        strings.push(...s.strings());
        regionSizes = serviceOf(triton)
          .sharedMemory.systemStatus("")
          .map(({ byteSize }) => Number(byteSize));
        return { y: x };
      }),
    config: { batching: false },
  });
  triton.bind({
    modelName: "open",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1, 3] }],
    outputs: [{ name: "n", dtype: "INT32", shape: [1] }],
    inferFunc: (requests) =>
      requests.map(({ inputs: { x } }) => {
        shapes.push(x.shape);
        return { n: Int32Array.of(1) };
      }),
    config: { batching: false },
  });
  for (const modelVersion of [1, 2]) {
    triton.bind({
      modelName: "versions",
      modelVersion,
      inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
      outputs: [output],
      inferFunc: (requests) => requests.map(({ inputs: { x } }) => ({ y: x })),
      config: { batching: false },
    });
  }
  const totals = sequenceState(() => ({ sum: 0 }));
  triton.bind({
    modelName: "sum",
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: (requests) =>
      requests.map(({ inputs: { x }, sequence, correlationId, sequenceStart: start, sequenceEnd: end }) => {
        steps.push({ id: Number(correlationId), start, end });
        const total = totals(sequence);
        total.sum += x.data[0]!;
        return { y: [[total.sum]] };
      }),
    config: { sequence: { maxSequenceIdleMicroseconds: 60_000_000 }, instanceGroup: [{ count: 4 }] },
  });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
  urls.http = `127.0.0.1:${addresses.http!.port}`;
  urls.grpc = `127.0.0.1:${addresses.grpc!.port}`;
});

afterAll(async () => {
  await triton.close();
  await rm(folder, { recursive: true });
});

/** Runs the command over HTTP, or over gRPC where the options say so. Without another count it sends 5 requests. */
function run(options: string) {
  const url = options.includes("-i grpc") ? urls.grpc : urls.http;
  const count = options.includes("--request-count") ? "" : " --request-count 5";
  return runCommand(`-u ${url} --max-threads 1 ${options.trim()}${count}`);
}

async function runWell(options: string): Promise<string> {
  const { code, output, errors } = await run(options);
  expect({ code, errors: code === 0 ? "" : errors + output }).toEqual({ code: 0, errors: "" });
  return output;
}

describe("the options of perf reach the server", () => {
  it.each(["http", "grpc", "grpc --streaming"])(
    "with headers and parameters in each request over %s",
    async (protocol) => {
      const given = ["temperature:0.5:double", "top:3:int", "on:true:bool", "name:a:b:string"];
      await runWell(
        `-m probe -i ${protocol} -H x-team:vision -H x-key:a:b ${given.map((one) => `--request-parameter ${one}`).join(" ")}`,
      );
      const parameter = { temperature: 0.5, top: 3, on: true, name: "a:b" };
      expect(parameters.map((one) => JSON.parse(JSON.stringify(one, plain)))).toEqual(
        Array(5).fill(expect.objectContaining(parameter)),
      );
      expect(headers.length).toBe(protocol.includes("streaming") ? 1 : 5);
      for (const sent of headers) expect([sent.get("x-team"), sent.get("x-key")]).toEqual(["vision", "a:b"]);
    },
  );

  it.each(["http", "grpc"])("with the version of -x over %s", async (protocol) => {
    const counts = () =>
      ["1", "2"].map((v) => serviceOf(triton).statistics("versions", v)[0]!.inferenceStats.success.count);
    for (const version of [0, 1]) {
      const before = counts();
      await runWell(`-m versions -x ${version + 1} -i ${protocol}`);
      const after = counts().map((count, i) => count - before[i]!);
      expect(after).toEqual(version === 0 ? [5, 0] : [0, 5]);
    }
    expect(await run(`-m versions -x 7 -i ${protocol}`)).toMatchObject({
      code: 99,
      errors: expect.stringContaining("'versions' version 7"),
    });
  });

  it("with generated data as --input-data, --string-data and --string-length say", async () => {
    await runWell("-m probe --input-data zero");
    expect([new Set(values), new Set(strings)]).toEqual([new Set([0]), new Set([""])]);
    strings = [];
    await runWell("-m probe --string-data hello");
    expect(strings).toEqual(Array(10).fill("hello"));
    strings = [];
    await runWell("-m probe --string-length 9");
    expect(strings.map(({ length }) => length)).toEqual(Array(10).fill(9));
    expect(new Set(strings).size).toBe(10);
  });

  it("with equal data in all requests only after --same-data, and other data after another --seed", async () => {
    const seen: string[][] = [];
    for (const options of ["", "--same-data", "--same-data --seed 1", "--same-data --seed 1"]) {
      rows = [];
      await runWell(`${options} -m probe`);
      seen.push([...new Set(rows)]);
    }
    expect(seen.map(({ length }) => length)).toEqual([5, 1, 1, 1]);
    expect(seen[2]).not.toEqual(seen[1]);
    expect(seen[3]).toEqual(seen[2]);
  });

  it("with the files of a directory, whose outputs are compared", async () => {
    const floats = (...all: number[]) => new Uint8Array(Float32Array.from(all).buffer);
    await writeFile(join(folder, "x"), floats(1, 2, 3, 4));
    await writeFile(join(folder, "s"), "one\ntwo\n");
    await writeFile(join(folder, "y"), floats(1, 2, 3, 4));
    await runWell(`-m probe --input-data ${folder} --request-count 2`);
    expect(values).toEqual([1, 2, 3, 4, 1, 2, 3, 4]);
    expect(strings).toEqual(["one", "two", "one", "two"]);
    await writeFile(join(folder, "y"), floats(1, 2, 3, 5));
    expect(await run(`-m probe --input-data ${folder}`)).toMatchObject({
      code: 99,
      output: expect.stringContaining("5 x Output doesn't match expected output: 'y': its values differ"),
    });
  });

  it("with the shape of --shape, and refuse one that the input cannot have", async () => {
    await runWell("-m open --shape x:7,3");
    expect(shapes).toEqual(Array(5).fill([7, 3]));
    for (const [options, text] of [
      ["--shape x:7,4", "--shape: input 'x': expected a shape that matches [-1,3], got [7,4]"],
      ["--shape x:7", "--shape: input 'x': expected a shape that matches [-1,3], got [7]"],
      ["--shape z:7,3", "--shape: expected an input of model 'open' ('x'), got 'z'"],
      ["", "has the variable shape [-1,3]: expected its shape, as in --shape x:1,3"],
    ] as const) {
      expect(await run(`${options} -m open`)).toMatchObject({
        code: 99,
        errors: expect.stringContaining(text),
      });
    }
  });

  it.skipIf(!existsSync("/dev/shm"))("with outputs of --output-shared-memory-size", async () => {
    await runWell("-m probe --shared-memory system --output-shared-memory-size 48");
    expect(regionSizes).toContain(48);
    const { code, output } = await run("-m probe --shared-memory system --output-shared-memory-size 8");
    expect(code).toBe(99);
    expect(output).toContain("for output 'y' (8 bytes) should be at least 16 bytes to hold the results");
  });

  it.each(["http", "grpc --streaming --serial-sequences"])(
    "with sequences of their length, number and ids over %s",
    async (protocol) => {
      await runWell(
        `-m sum -i ${protocol} --request-rate-range 500 --num-of-sequences 2 --sequence-length 5 ` +
          "--sequence-length-variation 0 --sequence-id-range 100:104 --request-count 40",
      );
      expect(new Set(steps.map(({ id }) => id))).toEqual(new Set([100, 101, 102, 103]));
      expect(steps).toHaveLength(40);
      const live = new Map<number, number>();
      const lengths: number[] = [];
      for (const { id, start, end } of steps) {
        live.set(id, start ? 1 : live.get(id)! + 1);
        expect(live.size).toBeLessThanOrEqual(2);
        if (!end) continue;
        lengths.push(live.get(id)!);
        live.delete(id);
      }
      expect(live.size).toBe(0);
      // The last two may be shorter, so that both end with the last requests.
      expect(new Set(lengths.slice(0, -2))).toEqual(new Set([5]));
    },
  );
});

/** Parameters of gRPC may be 64-bit integers. */
function plain(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}
