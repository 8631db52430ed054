import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { LoadGenerator } from "../../src/load/load-generator.js";
import { startLoadGenerator } from "../../src/load/load-generator.js";
import type { LoadLevel } from "../../src/load/load-level.js";
import type { LoadWindow, RequestRecords } from "../../src/load/request-records.js";
import { generatorFor, type ServedModels, serveModels } from "../support/served-models.js";

const levels: readonly LoadLevel[] = [
  { mode: "concurrency", value: 5 },
  { mode: "request_rate", value: 2000, distribution: "poisson" },
  { mode: "request_rate_ramp", from: 500, to: 4000, distribution: "constant", durationMs: 20 },
  { mode: "concurrency_ramp", from: 1, to: 4, durationMs: 10 },
  { mode: "request_intervals", gapsMicroseconds: [200, 1000] },
];

const failuresIn = ({ failure }: RequestRecords): number => failure.filter((index) => index > 0).length;

/** The next window, after a turn of the event loop, in which the generator works. */
async function nextWindow(generator: LoadGenerator): Promise<LoadWindow> {
  await new Promise((resolve) => setImmediate(resolve));
  return generator.take();
}

/** A file of input data that is removed after the test. */
function dataFile(content: object): string {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-load-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "data.json");
  writeFileSync(file, JSON.stringify(content));
  return file;
}

describe("a load generator", () => {
  for (const kind of ["http", "grpc", "stream", "in-process"] as const) {
    it(`sends over ${kind} exactly the requests that the server counts, at every kind of level`, async () => {
      const models = await serveModels();
      const target = targetOf(models, kind, "double");
      const generator = await generatorFor(target, { data: { batchSize: 2 } });
      let sent = 0;
      for (const level of levels) {
        const { records } = await generator.run(level, 37);
        expect(records.errors).toEqual([]);
        expect(records.count).toBe(37);
        expect(Array.from(records.responses)).toEqual(Array(37).fill(1));
        for (let i = 0; i < 37; i++) {
          expect(records.sent[i]).toBeGreaterThanOrEqual(records.scheduled[i]!);
          expect(records.firstResponse[i]).toBeGreaterThanOrEqual(records.sent[i]!);
          expect(records.end[i]).toBeGreaterThanOrEqual(records.firstResponse[i]!);
        }
        sent += 37;
        expect(models.successes("double")).toBe(sent);
      }
      expect(models.seenValues.length).toBe(2 * sent);
      // The first row of each request has new values.
      expect(new Set(models.seenValues).size).toBeGreaterThan(sent);
    });

    it(`counts what it sent over ${kind} between begin and pause as the server does`, async () => {
      const models = await serveModels();
      const generator = await generatorFor(targetOf(models, kind, "double"));
      await generator.begin({ mode: "concurrency", value: 3 });
      let count = 0;
      while (count < 20) count += (await nextWindow(generator)).records.count;
      await generator.begin({ mode: "concurrency", value: 1 });
      count += (await generator.pause()).records.count;
      expect((await generator.take()).records.count).toBe(0);
      expect(models.successes("double")).toBe(count);
    });

    it(`records the errors of a model over ${kind} by their texts`, async () => {
      const models = await serveModels();
      const inputData = [dataFile({ data: [{ x: [1] }, { x: [-7] }, { x: [3] }] })];
      const generator = await generatorFor(targetOf(models, kind, "picky"), { data: { inputData } });
      const { records } = await generator.run({ mode: "concurrency", value: 2 }, 30);
      expect(failuresIn(records)).toBe(10);
      expect(records.errors).toEqual([expect.stringContaining("negative: -7")]);
      expect(Array.from(records.failure, (failure) => failure > 0)).toEqual(
        Array.from(records.payload, (payload) => payload === 1),
      );
      expect([models.successes("picky"), models.failures("picky")]).toEqual([20, 10]);
    });

    it(`compares outputs over ${kind} with validation data byte by byte`, async () => {
      const models = await serveModels();
      const inputData = [
        dataFile({
          data: [{ x: [1, 2, 3, 4] }, { x: [0, 0, 0, 0] }],
          validation_data: [{ y: [2, 4, 6, 8] }, { y: [0, 0, 0, 1] }],
        }),
      ];
      const generator = await generatorFor(targetOf(models, kind, "double"), { data: { inputData } });
      const { records } = await generator.run({ mode: "concurrency", value: 1 }, 6);
      expect(Array.from(records.failure)).toEqual([0, 1, 0, 1, 0, 1]);
      expect(records.errors).toEqual(["Output doesn't match expected output: 'y': its values differ"]);
    });

    it(`runs sequences over ${kind} whole, and ends open ones at a pause`, async () => {
      const models = await serveModels();
      const generator = await generatorFor(targetOf(models, kind, "sum"), {
        load: { sequences: { length: 6, lengthVariationPercent: 50 } },
      });
      const { records } = await generator.run({ mode: "concurrency", value: 3 }, 40);
      expect(records.errors).toEqual([]);
      expect(records.count).toBe(40);
      await generator.begin({ mode: "concurrency", value: 3 });
      let count = 40;
      while (count < 60) count += (await nextWindow(generator)).records.count;
      count += (await generator.pause()).records.count;
      expect(models.successes("sum")).toBe(count);
      const open = new Set<unknown>();
      for (const { id, start, end } of models.seenSteps) {
        expect(open.has(id)).toBe(!start);
        if (end) open.delete(id);
        else open.add(id);
        expect(open.size).toBeLessThanOrEqual(3);
      }
      expect(open.size).toBe(0);
    });
  }

  it("counts the responses of decoupled models, without the empty final ones", async () => {
    const models = await serveModels();
    const inputData = [dataFile({ data: [{ x: [3] }, { x: [0] }, { x: [1] }] })];
    for (const kind of ["stream", "in-process"] as const) {
      const generator = await generatorFor(targetOf(models, kind, "count"), {
        data: { inputData },
        load: { keepOutputs: true },
      });
      const { records } = await generator.run({ mode: "concurrency", value: 2 }, 9);
      expect(records.errors).toEqual([]);
      const kept = records.kept!;
      records.payload.forEach((payload, i) => {
        const responses = [3, 0, 1][payload]!;
        expect(records.responses[i]).toBe(responses);
        const outputs = kept.outputs!.slice(kept.offsets[i], kept.offsets[i + 1]);
        expect(outputs).toEqual(Array.from({ length: responses }, (_, n) => `{"y":${n}}`));
        expect(Number.isNaN(records.firstResponse[i])).toBe(responses === 0);
      });
    }
  });

  it("rejects a decoupled model without streaming", async () => {
    const models = await serveModels();
    await expect(generatorFor(targetOf(models, "grpc", "count"))).rejects.toThrow(
      "model 'count' is decoupled: expected gRPC with streaming (-i grpc --streaming), got gRPC without streaming",
    );
  });

  it("sends strings, JSON tensors and compressed bodies", async () => {
    const models = await serveModels();
    const http = targetOf(models, "http", "text");
    const grpc = targetOf(models, "grpc", "text");
    const variants = [
      { ...http, inputTensorFormat: "json", outputTensorFormat: "json" },
      { ...http, requestCompression: "gzip", responseCompression: "gzip" },
      { ...grpc, compression: "deflate" },
      { ...grpc, compression: "gzip", streaming: true },
    ] as const;
    for (const target of variants) {
      const inputData = [
        dataFile({
          data: [{ s: ["a", "öß"] }, { s: { b64: "AQAAAGEAAAAA" } }],
          validation_data: [{ t: ["a", "öß"] }, { t: ["a", ""] }],
        }),
      ];
      const generator = await generatorFor(target, { data: { inputData, batchSize: 2 } });
      const { records } = await generator.run({ mode: "concurrency", value: 2 }, 8);
      expect(records.errors).toEqual([]);
    }
    expect(models.successes("text")).toBe(32);
  });

  it("compresses the requests of sequences, each with its own id", async () => {
    const models = await serveModels();
    for (const streaming of [false, true]) {
      const target = { ...targetOf(models, "grpc", "sum"), compression: "gzip", streaming } as const;
      const generator = await generatorFor(target, { load: { sequences: { length: 3 } } });
      const { records } = await generator.run({ mode: "concurrency", value: 2 }, 12);
      expect(records.errors).toEqual([]);
      expect(new Set(records.sequence).size).toBeGreaterThan(2);
    }
    expect([models.successes("sum"), models.failures("sum")]).toEqual([24, 0]);
    expect(new Set(models.seenSteps.map(({ id }) => id)).size).toBeGreaterThan(2);
  });

  it("plays a fixed schedule once, each payload at its time", async () => {
    const models = await serveModels();
    const inputData = [
      dataFile({ data: [0, 3, 3, 9].map((time) => ({ x: [time, 0, 0, 0], timestamp: [time] })) }),
    ];
    const generator = await generatorFor(targetOf(models, "http", "double"), {
      data: { inputData, fixedSchedule: true },
    });
    await generator.begin({ mode: "fixed_schedule", timestampsMs: [0, 3, 3, 9] });
    const { records } = await generator.pause();
    expect(Array.from(records.payload).sort()).toEqual([0, 1, 2, 3]);
    const first = Math.min(...records.scheduled);
    const times = Array.from(records.payload, (payload, i) => [
      payload,
      Math.round(records.scheduled[i]! - first),
    ]);
    expect(Object.fromEntries(times)).toEqual({ 0: 0, 1: 3, 2: 3, 3: 9 });
    expect(models.seenValues.sort((a, b) => a - b)).toEqual([0, 3, 3, 9]);
  });

  for (const kind of ["http", "grpc", "stream"] as const) {
    it(`fails requests over ${kind} at their deadline, and cancels them`, async () => {
      const models = await serveModels();
      let cancelled = 0;
      models.triton.bind({
        modelName: "stuck",
        inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
        outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
        inferFunc: ([request]) =>
          new Promise<Error[]>((resolve) => {
            request!.signal.addEventListener("abort", () => {
              cancelled++;
              resolve([new Error("gave up")]);
            });
          }),
        config: { batching: false },
      });
      await models.triton.ready();
      const generator = await generatorFor(targetOf(models, kind, "stuck"), { load: { timeoutMs: 30 } });
      const { records } = await generator.run({ mode: "concurrency", value: 1 }, 2);
      expect(records.errors).toEqual(["no answer within 30 ms"]);
      expect(failuresIn(records)).toBe(2);
      // On a stream, a single request cannot be cancelled.
      if (kind !== "stream") await expect.poll(() => cancelled).toBeGreaterThan(0);
      await generator.close();
    });

    it(`counts requests over ${kind} to a server that has gone as failed`, async () => {
      const models = await serveModels();
      const generator = await generatorFor(targetOf(models, kind, "double"));
      await generator.begin({ mode: "concurrency", value: 4 });
      let count = 0;
      while (count < 10) count += (await nextWindow(generator)).records.count;
      const answered = count;
      await models.triton.close();
      // Before, requests may fail with what the closing server answers.
      const cannotConnect = (text: string) => text.includes("cannot connect to 127.0.0.1");
      for (let isGone = false; !isGone; ) {
        const { records } = await nextWindow(generator);
        isGone = records.errors.some(cannotConnect) && failuresIn(records) > 0;
      }
      await generator.pause();
      expect(answered).toBeGreaterThanOrEqual(10);
    });
  }

  it("fails requests whose connection is lost in their middle, and connects again", async () => {
    const server = await rawServer((connection, index) => (socket) => {
      if (index === 0) socket.destroy();
      else socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
      void connection;
    });
    const generator = await startLoadGenerator(
      { kind: "openai", url: `http://127.0.0.1:${server.port}`, modelName: "m" },
      { kind: "openai", payloads: ["{}"], batchSize: 1 },
      { threads: 0 },
    );
    onTestFinished(() => generator.close());
    const { records } = await generator.run({ mode: "concurrency", value: 1 }, 3);
    expect(Array.from(records.failure)).toEqual([1, 0, 0]);
    expect(records.errors[0]).toMatch(/^connection to 127\.0\.0\.1:\d+ lost: /);
  });
});

/** A server over bare sockets. The handler gets the number of the connection, and each request as it comes. */
async function rawServer(
  handle: (connection: number, index: number) => (socket: import("node:net").Socket) => void,
): Promise<{ readonly port: number }> {
  let connections = 0;
  const server: Server = createServer((socket) => {
    const index = connections++;
    socket.on("data", () => handle(index, index)(socket));
    socket.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { port: (server.address() as { port: number }).port };
}

function targetOf(models: ServedModels, kind: "http" | "grpc" | "stream" | "in-process", modelName: string) {
  switch (kind) {
    case "http":
      return { kind, url: models.http, modelName } as const;
    case "in-process":
      return { kind, source: { triton: models.triton }, modelName } as const;
    default:
      return { kind: "grpc", url: models.grpc, streaming: kind === "stream", modelName } as const;
  }
}
