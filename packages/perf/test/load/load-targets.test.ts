import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { batch, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { loadDataSet, readModel, startLoadGenerator } from "@tritonjs/perf";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { makeCertificates } from "../../../../test/support/certificates.js";
import { startLoadGenerator as startHere } from "../../src/load/load-generator.js";
import type { LoadLevel } from "../../src/load/load-level.js";
import { headerBlocks } from "../../src/target/http2-frames.js";
import { Http2Session } from "../../src/target/http2-session.js";
import { generatorFor, serveModels } from "../support/served-models.js";

describe("threads of a load generator", () => {
  it("together send exactly the requests that the server counts", async () => {
    const models = await serveModels();
    const levels: readonly LoadLevel[] = [
      { mode: "concurrency", value: 5 },
      { mode: "request_rate", value: 3000, distribution: "poisson" },
    ];
    let sent = 0;
    for (const target of [
      { kind: "http", url: models.http, modelName: "double" },
      { kind: "grpc", url: models.grpc, modelName: "double" },
    ] as const) {
      const data = await loadDataSet(await readModel(target));
      const generator = await startLoadGenerator(target, data, { threads: 2 });
      onTestFinished(() => generator.close());
      for (const level of levels) {
        const { records, usage } = await generator.run(level, 41);
        expect(records.errors).toEqual([]);
        expect(records.count).toBe(41);
        expect(usage.bytesSent).toBeGreaterThan(41 * 16);
        expect(usage.cpuUtilization).toBeGreaterThanOrEqual(0);
        expect(usage.cpuUtilization).toBeLessThanOrEqual(1);
        sent += 41;
        expect(models.successes("double")).toBe(sent);
      }
      await generator.close();
      await expect(generator.take()).rejects.toThrow("the load generator is closed");
    }
    // Both generators have the same seed, and send the same data.
    expect(new Set(models.seenValues).size).toBe(sent / 2);
  });
});

describe("tensors in shared memory", () => {
  it.skipIf(process.platform !== "linux")("are registered, used and removed again", async () => {
    const models = await serveModels();
    const mine = () =>
      readdirSync("/dev/shm").filter((name) => name.startsWith(`tritonjs_perf_${process.pid}_`));
    for (const target of [
      { kind: "http", url: models.http, modelName: "double", sharedMemory: "system" },
      { kind: "grpc", url: models.grpc, modelName: "double", sharedMemory: "system" },
    ] as const) {
      const generator = await generatorFor(target, { data: { batchSize: 2 } });
      expect(mine().length).toBe(2);
      const { records } = await generator.run({ mode: "concurrency", value: 2 }, 20);
      expect(records.errors).toEqual([]);
      await generator.close();
      expect(mine()).toEqual([]);
      expect(serviceOf(models.triton).sharedMemory.systemStatus("")).toEqual([]);
    }
    expect(models.successes("double")).toBe(40);
  });

  it.skipIf(process.platform !== "linux")("are removed when the outputs cannot be compared", async () => {
    const models = await serveModels();
    const target = { kind: "http", url: models.http, modelName: "double", sharedMemory: "system" } as const;
    const data = await loadDataSet(await readModel(target));
    const expected = [{ name: "y", datatype: "FP32", bytes: new Uint8Array(16) }] as const;
    const payloads = data.payloads.map((payload) => ({ ...payload, expected }));
    await expect(startHere(target, { ...data, payloads })).rejects.toThrow(
      "validation_data: outputs in shared memory cannot be compared",
    );
    expect(
      readdirSync("/dev/shm").filter((name) => name.startsWith(`tritonjs_perf_${process.pid}_`)),
    ).toEqual([]);
    expect(serviceOf(models.triton).sharedMemory.systemStatus("")).toEqual([]);
  });
});

describe("a target with TLS", () => {
  it("is reached over HTTP and gRPC with a given authority, and not without it", async () => {
    const { ca, server } = await makeCertificates();
    const triton = new Triton();
    onTestFinished(() => triton.close());
    triton.bind({
      modelName: "m",
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: batch(({ x }) => ({ y: x })),
    });
    const { addresses } = await triton.serve({
      frontends: [http({ port: 0, tls: server }), grpc({ port: 0, tls: server })],
    });
    for (const kind of ["http", "grpc"] as const) {
      const { port } = addresses[kind]!;
      const url = kind === "http" ? `https://localhost:${port}` : `localhost:${port}`;
      const generator = await generatorFor({ kind, url, modelName: "m", tls: { ca } });
      const { records } = await generator.run({ mode: "concurrency", value: 2 }, 10);
      expect(records.errors).toEqual([]);
      await expect(generatorFor({ kind, url, modelName: "m", tls: {} })).rejects.toThrow();
    }
    expect(serviceOf(triton).statistics("m", "")[0]!.inferenceStats.success.count).toBe(20);
  });
});

describe("an OpenAI endpoint", () => {
  it("answers with one body or a stream of events, whose times and tokens are kept", async () => {
    const bodies: string[] = [];
    const server = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk) => (body += chunk));
      request.on("end", () => {
        bodies.push(`${request.url} ${body}`);
        const usage = { prompt_tokens: 4, completion_tokens: 5 };
        if (JSON.parse(body).stream !== true) {
          response.end(JSON.stringify({ choices: [{ message: { content: "hello" } }], usage }));
          return;
        }
        response.setHeader("content-type", "text/event-stream");
        const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
        response.write(event({ choices: [{ delta: { role: "assistant", content: "" } }] }));
        response.write(event({ choices: [{ delta: { content: "hel" } }] }).slice(0, 20));
        response.write(event({ choices: [{ delta: { content: "hel" } }] }).slice(20));
        response.write(event({ choices: [{ delta: { content: "lo" } }] }));
        response.end(`${event({ choices: [], usage })}data: [DONE]\n\n`);
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const data = { kind: "openai", payloads: ['{"messages":[]}'], batchSize: 1 } as const;
    const tokens = [];
    for (const streaming of [false, true]) {
      const target = { kind: "openai", url, modelName: "m", streaming } as const;
      const generator = await startHere(target, data, { threads: 0, keepResponses: true });
      const { records } = await generator.run({ mode: "concurrency", value: 1 }, 2);
      expect(records.errors).toEqual([]);
      tokens.push([Array.from(records.kept!.tokens!), Array.from(records.kept!.inputTokens!)]);
      await generator.close();
    }
    expect(tokens).toEqual([
      [
        [5, 5],
        [4, 4],
      ],
      [
        [1, 4, 1, 4],
        [4, 4],
      ],
    ]);
    expect(bodies[0]).toBe('/v1/chat/completions {"messages":[],"model":"m"}');
    expect(JSON.parse(bodies[2]!.split(" ")[1]!)).toMatchObject({ stream: true, model: "m" });
  });
});

describe("headers of the HTTP/2 client", () => {
  it("arrive as sent, and answers are decoded, whatever characters they have", async () => {
    const text = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).join("");
    const received: Record<string, unknown>[] = [];
    const server = createHttp2Server();
    server.on("stream", (stream, headers) => {
      received.push(headers);
      stream.respond({ ":status": 200, "x-all": text, "x-long": "e".repeat(500) }, { waitForTrailers: true });
      stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "grpc-message": "ok" }));
      stream.resume().end("done");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const blocks = headerBlocks([
      [":method", "POST"],
      [":scheme", "http"],
      [":path", "/call"],
      [":authority", `127.0.0.1:${port}`],
      ["x-mine", text],
    ]);
    const session = new Http2Session({ host: "127.0.0.1", port, basePath: "/" }, blocks, () => {});
    onTestFinished(() => session.destroy());
    // Larger than the windows of the server.
    const body = Buffer.alloc(300_000, "a");
    for (let i = 0; i < 4; i++) {
      const answers: ReadonlyMap<string, string>[] = [];
      let data = "";
      await new Promise<void>((resolve, reject) => {
        const call = {
          onSent: () => {},
          onHeaders: (headers: ReadonlyMap<string, string>) => void answers.push(headers),
          onData: (bytes: Buffer) => {
            data += bytes;
          },
          onEnd: resolve,
          onFault: (fault: string) => reject(new Error(fault)),
        };
        session.start(call, Buffer.from("head"), i % 2 === 0 ? body : Buffer.from("small"), true);
      });
      expect(data).toBe("done");
      expect(answers[0]!.get("x-all")).toBe(text);
      expect(answers[0]!.get("x-long")).toBe("e".repeat(500));
      expect(Object.fromEntries(answers[1]!)).toEqual({ "grpc-status": "0", "grpc-message": "ok" });
      expect(received[i]).toMatchObject({ ":path": "/call", ":method": "POST", "x-mine": text });
    }
  });
});
