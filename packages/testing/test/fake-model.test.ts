import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { batch, Tensor, Triton } from "@tritonjs/core";
import { repository as withRepository } from "@tritonjs/repository";
import {
  assertTensorSnapshot,
  assertTensors,
  Faults,
  fakeBackend,
  fakeModel,
  outputsDifference,
  type TensorMatchers,
  tensorMatchers,
  VirtualClock,
} from "@tritonjs/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FAULT_NAMES } from "../src/faults.js";

expect.extend(tensorMatchers);

declare module "vitest" {
  interface Matchers<T> extends TensorMatchers<T> {}
}

describe("fake model", () => {
  const inputs = [
    { name: "x", dtype: "FP32", shape: [2] },
    { name: "word", dtype: "BYTES", shape: [1], optional: true },
  ] as const;

  const outputs = [
    { name: "y", dtype: "FP32", shape: [2] },
    { name: "label", dtype: "BYTES", shape: [1] },
  ] as const;

  let triton: Triton;
  let clock: VirtualClock;

  function open() {
    clock = new VirtualClock();
    triton = new Triton({ clock });
  }

  afterEach(async () => {
    const closed = triton.close();
    await clock.advance(0);
    await closed;
  });

  /** The outcome of a call once an hour has passed on the clock. */
  async function outcome<T>(call: Promise<T>, ms = 3_600_000): Promise<T> {
    const settled = call.catch((error: unknown) => error as never);
    await clock.advance(ms);
    return settled;
  }

  describe("a fake model", () => {
    it("answers zeros and empty strings, and computes rows by a function of one sample", async () => {
      open();
      const zeros = triton.bind({
        modelName: "zeros",
        inferFunc: fakeModel({ inputs, outputs }),
        config: { batching: true },
      });
      const nothing = await outcome(
        zeros.inferBatch({
          x: [
            [1, 2],
            [3, 4],
          ],
        }),
      );
      expect([nothing.y.toArray(), nothing.label.strings()]).toEqual([
        [
          [0, 0],
          [0, 0],
        ],
        ["", ""],
      ]);
      const model = triton.bind({
        modelName: "double",
        inferFunc: fakeModel({
          inputs,
          outputs,
          answer: ({ x, word }) => ({ y: [2 * x.get(0), 2 * x.get(1)], label: word?.text(0) ?? "none" }),
        }),
        config: { batching: true },
      });
      const { y, label } = await outcome(
        model.inferBatch({
          x: [
            [1, 2],
            [3, 4],
          ],
          word: [["a"], ["b"]],
        }),
      );
      expect([y.toArray(), label.strings()]).toEqual([
        [
          [2, 4],
          [6, 8],
        ],
        ["a", "b"],
      ]);
      expect((await outcome(model.inferSample({ x: [1, 2] }))).label.text(0)).toBe("none");
    });

    it("batches and waits on the virtual clock as the real model would", async () => {
      open();
      const model = triton.bind({
        modelName: "m",
        inferFunc: fakeModel({ inputs, outputs, delayMs: 50 }),
        config: { maxBatchSize: 8, batcher: { maxQueueDelayMicroseconds: 10_000 } },
      });
      const answers = Promise.all([model.inferSample({ x: [1, 2] }), model.inferSample({ x: [3, 4] })]);
      await clock.advance(59);
      expect(model.statistics().executionCount).toBe(0);
      await clock.advance(1);
      await answers;
      expect(model.statistics().executionCount).toBe(1);
      const late = outcome(model.inferSample({ x: [1, 2] }, { timeoutMs: 20 }), 20);
      expect(await late).toMatchObject({ code: "UNAVAILABLE" });
      await clock.advance(1_000);
    });

    it("has each fault by name, and serves on after it", async () => {
      open();
      const faults = new Faults();
      const model = triton.bind({ modelName: "m", inferFunc: fakeModel({ inputs, outputs, faults }) });
      const shown: Record<string, unknown> = {};
      for (const name of FAULT_NAMES) {
        faults.next(name);
        const result = (await outcome(model.inferSample({ x: [1, 2] }))) as {
          y?: { data: Float32Array };
          message?: string;
          code?: string;
        };
        shown[name] = result.y === undefined ? [result.code, result.message] : [...result.y.data];
        const { y } = await outcome(model.inferSample({ x: [1, 2] }));
        expect([name, ...y.data]).toEqual([name, 0, 0]);
      }
      expect(shown).toEqual({
        late: [0, 0],
        crash: ["INTERNAL", "instance 'm_0' of model 'm' crashed: the test said so"],
        "wrong-shape": ["INTERNAL", "model 'm' returned a wrong output 'y': expected shape [2], got [2,1]"],
        nan: [NaN, NaN],
        "out-of-memory": [
          "INTERNAL",
          "instance 'm_0' of model 'm': Failed to allocate memory for requested buffer",
        ],
        "cut-stream": ["UNAVAILABLE", "instance 'm_0' of model 'm': the stream was cut"],
      });
      expect(() => faults.next("slow" as "late")).toThrow(
        "fault: expected one of late, crash, wrong-shape, nan, out-of-memory, cut-stream, got 'slow'",
      );
    });

    it("is late by the clock, stays down after a crash, and keeps a fault until it is cleared", async () => {
      open();
      const faults = new Faults();
      const model = triton.bind({ modelName: "m", inferFunc: fakeModel({ inputs, outputs, faults }) });
      faults.next("late", { delayMs: 500 });
      let done = false;
      const late = model.inferSample({ x: [1, 2] }).then(() => (done = true));
      await clock.advance(499);
      expect(done).toBe(false);
      await clock.advance(1);
      await late;
      faults.next("crash", { delayMs: 2_000 });
      expect(await outcome(model.inferSample({ x: [1, 2] }), 10)).toMatchObject({ reason: "WORKER_CRASHED" });
      let back = false;
      const waiting = model.inferSample({ x: [1, 2] }).then(() => (back = true));
      await clock.advance(1_000);
      expect(back).toBe(false);
      await clock.advance(1_000);
      await waiting;
      faults.pass(1).always("nan");
      const nans = async () => (await outcome(model.inferSample({ x: [1, 2] }))).y.get(0);
      expect([await nans(), await nans(), await nans()]).toEqual([0, NaN, NaN]);
      faults.clear();
      expect(await nans()).toBe(0);
    });

    it("streams the responses of a decoupled model, and cuts the stream", async () => {
      open();
      const faults = new Faults();
      const model = triton.bind({
        modelName: "m",
        inferFunc: fakeModel({
          inputs: [{ name: "n", dtype: "INT32", shape: [1] }],
          outputs: [{ name: "left", dtype: "INT32", shape: [1] }],
          decoupled: true,
          faults,
          answer: ({ n }) => Array.from({ length: n.get(0) }, (_, i) => ({ left: [i] })),
        }),
      });
      const seen: number[] = [];
      const read = async () => {
        for await (const { left } of model.stream({ n: [3] })) seen.push(left.data[0]!);
      };
      await outcome(read());
      expect(seen).toEqual([0, 1, 2]);
      faults.next("cut-stream", { responses: 2 });
      seen.length = 0;
      expect(await outcome(read())).toMatchObject({ code: "UNAVAILABLE" });
      expect(seen).toEqual([0, 1]);
    });

    it("answers recorded calls, and names the nearest for others", async () => {
      open();
      const fp32 = (data: number[]) => ({ datatype: "FP32", shape: [1, 2], data }) as const;
      const model = triton.bind({
        modelName: "m",
        inferFunc: fakeModel({
          inputs,
          outputs,
          recorded: [
            {
              inputs: { x: fp32([1, 2]) },
              responses: [{ y: fp32([5, 6]), label: { datatype: "BYTES", shape: [1, 1], data: ["cat"] } }],
            },
          ],
        }),
        config: { batching: true },
      });
      const { y, label } = await outcome(model.inferSample({ x: [1, 2] }));
      expect([...y.data, label.text(0)]).toEqual([5, 6, "cat"]);
      expect(await outcome(model.inferSample({ x: [1, 3] }))).toMatchObject({
        code: "INVALID_ARG",
        message:
          "fake model 'm': none of its 1 recorded calls has these inputs; the nearest is call 1: input 'x': at [0, 1] expected 2, got 3",
      });
    });

    it("refuses answers that do not fit and options that it does not have", async () => {
      open();
      const model = triton.bind({
        modelName: "m",
        inferFunc: fakeModel({ inputs, outputs, answer: (() => ({ y: [1, 2, 3], label: "x" })) as never }),
      });
      expect(await outcome(model.inferSample({ x: [1, 2] }))).toMatchObject({
        code: expect.stringMatching(/INVALID_ARG|INTERNAL/),
      });
      expect(() => fakeModel({ inputs, outputs, delay: 1 } as never)).toThrow(/fakeModel\(\).*delay/s);
    });

    it("stands in for the models of a repository", async () => {
      open();
      const repository = await mkdtemp(join(tmpdir(), "fake-repository-"));
      try {
        await mkdir(join(repository, "m/1"), { recursive: true });
        await writeFile(
          join(repository, "m/config.pbtxt"),
          'backend: "onnxruntime" max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: 2 } output { name: "y" data_type: TYPE_FP32 dims: 2 }',
        );
        const backends = { onnxruntime: fakeBackend({ m: { answer: () => ({ y: [7, 8] }) } }) };
        await using served = new Triton({
          extensions: [withRepository({ modelRepository: repository, backends })],
        });
        await served.ready();
        const { y } = await served.infer("m", { x: [[1, 2]] });
        expect([...(y as { data: Float32Array }).data]).toEqual([7, 8]);
      } finally {
        await rm(repository, { recursive: true });
      }
    });
  });
});

describe("tensor assertions", () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "tensor-assertions-"));
  });

  afterEach(async () => {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true });
  });

  async function result() {
    await using triton = new Triton();
    const model = triton.bind({
      modelName: "m",
      inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
      outputs: [
        { name: "y", dtype: "FP32", shape: [2, 2] },
        { name: "ids", dtype: "INT64", shape: [1] },
        { name: "half", dtype: "FP16", shape: [2] },
        { name: "word", dtype: "BYTES", shape: [1] },
      ],
      inferFunc: batch(() => ({
        y: [
          [
            [1, 2],
            [NaN, -0],
          ],
        ],
        ids: [[2n ** 60n]],
        half: [[0.5, Infinity]],
        word: [["hé"]],
      })),
    });
    return await model.inferSample({ x: [1, 2] });
  }

  it("matchers compare results within a tolerance, and say where they differ", async () => {
    const outputs = await result();
    const expected = {
      y: [
        [1, 2],
        [NaN, 0],
      ],
      ids: [2n ** 60n],
      half: [0.5, Infinity],
      word: ["hé"],
    };
    expect(outputs).toMatchTensors(expected);
    expect(outputs).toMatchTensors(
      {
        ...expected,
        y: [
          [1, 2.001],
          [NaN, 0],
        ],
      },
      { absolute: 0.01 },
    );
    expect(outputs).not.toMatchTensors({ ...expected, ids: [2n ** 60n + 1n] });
    expect(outputs.y).toMatchTensor(new Float32Array([1, 2, NaN, 0]));
    const wrong = {
      y: [
        [1, 2.5],
        [3, 0],
      ],
      ids: [1n],
      half: [0.5],
      word: ["he"],
      more: [1],
    };
    expect(outputsDifference(outputs, wrong)).toBe(
      [
        "'y': at [0, 1] expected 2.5, got 2; 2 of 4 elements differ, by at most Infinity",
        "'ids': at [0] expected 1, got 1152921504606846976",
        "'half': expected shape [1], got [2]",
        "'word': at [0] expected 'he', got 'hé'",
        "'more': missing",
      ].join("\n"),
    );
    expect(() => assertTensors(outputs, wrong)).toThrow(/the tensors differ:\n'y': at \[0, 1\]/);
    expect(
      outputsDifference({ a: Tensor.fromElements("FP32", [1], Float32Array.of(1)), b: outputs.y }, {}),
    ).toBe("'a': not expected\n'b': not expected");
  });

  it("a snapshot is written once, compared within a tolerance, and written anew when told", async () => {
    vi.stubEnv("CI", "");
    vi.stubEnv("UPDATE_TENSOR_SNAPSHOTS", "");
    const outputs = await result();
    const file = pathToFileURL(join(folder, "snapshots/m.json"));
    await assertTensorSnapshot(outputs, file);
    await assertTensorSnapshot(outputs, file);
    await expect(outputs).toMatchTensorSnapshot(file);
    const text = await readFile(file, "utf8");
    await writeFile(file, text.replace('"1152921504606846976"', '"7"'));
    await expect(assertTensorSnapshot(outputs, file)).rejects.toThrow(/m\.json:\n'ids': at \[0\] expected 7/);
    vi.stubEnv("UPDATE_TENSOR_SNAPSHOTS", "1");
    await assertTensorSnapshot(outputs, file);
    expect(await readFile(file, "utf8")).toBe(text);
    vi.stubEnv("UPDATE_TENSOR_SNAPSHOTS", "");
    await writeFile(file, "{");
    await expect(assertTensorSnapshot(outputs, file)).rejects.toThrow(/cannot read the snapshot .*m\.json/);
    vi.stubEnv("CI", "true");
    await expect(assertTensorSnapshot(outputs, join(folder, "other.json"))).rejects.toThrow("does not exist");
  });

  it("a long tensor and bytes that are not text survive a snapshot", async () => {
    const outputs = {
      long: Tensor.fromElements(
        "FP64",
        [2_000],
        Float64Array.from({ length: 2_000 }, (_, i) => Math.sin(i)),
      ),
      bytes: Tensor.fromElements("BYTES", [2], [Uint8Array.of(0xff, 0), new Uint8Array()]),
      flags: Tensor.fromElements("BOOL", [2], Uint8Array.of(1, 0)),
    };
    const file = join(folder, "long.json");
    await assertTensorSnapshot(outputs, file, { update: true });
    await assertTensorSnapshot(outputs, file, { update: false });
  });
});
