import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batch, type InferContext, type Triton, TritonError } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, onTestFinished, test } from "vitest";
import { remote, remoteBackend, remoteOptionsOf } from "../../src/remote/index.js";
import { DOUBLE, localServer, startReplica } from "./support/replicas.js";

const doubling = (triton: Triton) =>
  void triton.bind({ ...DOUBLE, inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })) });

describe("a remote model", () => {
  test("an ensemble has steps on other servers", async () => {
    const replica = await startReplica(doubling);
    const triton = localServer();
    const inferFunc = await remote({ urls: replica.grpcUrl, model: "double" });
    triton.bind({ modelName: "far", inferFunc });
    const ensemble = triton.bindEnsemble({
      modelName: "twice",
      inputs: DOUBLE.inputs,
      outputs: DOUBLE.outputs,
      steps: [
        { modelName: "far", inputMap: { x: "x" }, outputMap: { y: "once" } },
        { modelName: "far", inputMap: { x: "once" }, outputMap: { y: "y" } },
      ],
    });
    const { y } = await ensemble.infer({ x: [[1, 2]] });
    expect(Array.from(y.data)).toEqual([4, 8]);
  });

  test("options that cannot be right are refused by name", async () => {
    const refusal = (options: object) => remote({ urls: "localhost:1", model: "m", ...options });
    await expect(refusal({ urls: [] })).rejects.toThrow("urls: expected the address of at least one server");
    await expect(refusal({ urls: "ftp://x" })).rejects.toThrow(
      "option urls: expected an address that begins with",
    );
    await expect(refusal({ model: "" })).rejects.toThrow(
      "option model: expected the name of a model, got ''",
    );
    await expect(refusal({ concurrency: 1.5 })).rejects.toThrow(
      "concurrency: expected an integer of at least 1",
    );
    await expect(refusal({ protocol: "tcp" })).rejects.toThrow(
      "protocol: expected 'grpc' or 'http', got 'tcp'",
    );
  });

  test("servers that do not come are reported after the limit", async () => {
    const gone = await startReplica(doubling);
    await gone.close();
    await expect(remote({ urls: gone.grpcUrl, model: "double", initTimeoutMs: 50 })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("no replica of model 'double' was ready within 50 ms"),
    });
  });
});

describe.each(["grpc", "http"] as const)("a model behind a server over %s", (protocol) => {
  const urlOf = ({ grpcUrl, httpUrl }: { grpcUrl: string; httpUrl: string }) =>
    protocol === "grpc" ? grpcUrl : httpUrl;

  test("is described by its server, and answers as if it were here", async () => {
    const replica = await startReplica(doubling);
    const triton = localServer();
    const inferFunc = await remote({ urls: urlOf(replica), model: "double" });
    const model = triton.bind({ modelName: "far", inferFunc });
    const { y } = await model.infer({ x: [[1, 2]] });
    const config = serviceOf(triton).modelConfig("far", "");
    expect(config.maxBatchSize).toBe(4);
    expect(config.input).toMatchObject([{ name: "x", dataType: "TYPE_FP32", dims: [2] }]);
    expect(Array.from(y!.data as Float32Array)).toEqual([2, 4]);
    expect(y!.shape).toEqual([1, 2]);
  });

  test("gets requests together, with an id, parameters and requested outputs", async () => {
    const seen: { rows: number; id: string; parameters: object; outputs: readonly string[] }[] = [];
    const replica = await startReplica((triton) => {
      triton.bind({
        ...DOUBLE,
        outputs: [...DOUBLE.outputs, { name: "z", dtype: "FP32", shape: [2] }],
        inferFunc: batch(({ x }, { requests }) => {
          for (const { batchSize: rows, id, parameters, requestedOutputs: outputs } of requests)
            seen.push({ rows, id, parameters, outputs });
          return { y: x, z: x };
        }),
      });
    });
    const triton = localServer();
    const inferFunc = await remote({ urls: urlOf(replica), model: "double", concurrency: 1 });
    const model = triton.bind({ modelName: "far", inferFunc });
    const request = (id: string, value: number) => model.infer({ x: [[value, value]] }, { id });
    const results = await Promise.all([request("a", 1), request("b", 2), request("c", 3)]);
    expect(results.map(({ y }) => (y as { data: Float32Array }).data[0])).toEqual([1, 2, 3]);
    expect(seen).toEqual([{ rows: 3, id: "a,b,c", parameters: {}, outputs: [] }]);
    seen.length = 0;
    await Promise.all([
      model.infer({ x: [[1, 1]] }, { parameters: { beam: 1 } }),
      model.infer({ x: [[2, 2]] }, { parameters: { beam: 2 } }),
      model.infer({ x: [[3, 3]] }, { parameters: { beam: 2 } }),
    ]);
    seen.sort((one, other) => one.rows - other.rows);
    expect(seen.map(({ rows, parameters }) => ({ rows, parameters }))).toEqual([
      { rows: 1, parameters: { beam: 1 } },
      { rows: 2, parameters: { beam: 2 } },
    ]);
  });

  test("keeps BYTES, FP16 and BF16 as they are", async () => {
    const tensors = ["BYTES", "FP16", "BF16", "UINT64", "BOOL"] as const;
    const specs = tensors.map((dtype) => ({ name: dtype, dtype, shape: [-1] }));
    const replica = await startReplica((triton) => {
      triton.bind({
        modelName: "same",
        inputs: specs,
        outputs: specs,
        inferFunc: batch((inputs) => ({ ...inputs })),
      });
    });
    const triton = localServer();
    const inferFunc = await remote({ urls: urlOf(replica), model: "same" });
    const far = triton.bind({ modelName: "far", inferFunc });
    const near = replica.triton;
    const inputs = {
      BYTES: [["ä", ""]],
      FP16: [[0.5, 65504]],
      BF16: [[1, -3.5]],
      UINT64: [[2n ** 64n - 1n, 0n]],
      BOOL: [[true, false]],
    };
    const expected = await near.infer("same", inputs as never);
    const got = await far.infer(inputs as never);
    for (const name of tensors) {
      const [one, other] = [got, expected].map(
        (all) => (all as Record<string, { data: ArrayLike<unknown> }>)[name]!,
      );
      expect(Array.from(one!.data)).toEqual(Array.from(other!.data));
    }
  });

  test("answers errors with their code and the address of the replica", async () => {
    const replica = await startReplica((triton) => {
      triton.bind({
        ...DOUBLE,
        inferFunc: () => {
          throw new TritonError("INVALID_ARG", "too blue");
        },
      });
    });
    const triton = localServer();
    const url = urlOf(replica);
    const model = triton.bind({ modelName: "far", inferFunc: await remote({ urls: url, model: "double" }) });
    await expect(model.infer({ x: [[1, 2]] })).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: expect.stringContaining(`replica ${url}: too blue`),
    });
  });

  test("is cancelled at its replica when its requests are cancelled or run out of time", async () => {
    const contexts: InferContext[] = [];
    const ends: Promise<unknown>[] = [];
    const began: (() => void)[] = [];
    const replica = await startReplica((triton) => {
      triton.bind({
        ...DOUBLE,
        inferFunc: (_, context) => {
          contexts.push(context);
          const end = new Promise<never>((_, reject) => {
            context.signal.addEventListener("abort", () => reject(context.signal.reason));
          });
          ends.push(end.catch((reason) => reason));
          began.shift()?.();
          return end;
        },
      });
    });
    const triton = localServer();
    const inferFunc = await remote({ urls: urlOf(replica), model: "double" });
    const model = triton.bind({ modelName: "far", inferFunc });
    const caller = new AbortController();
    const running = new Promise<void>((resolve) => began.push(resolve));
    const call = model.infer({ x: [[1, 2]] }, { signal: caller.signal });
    await running;
    caller.abort();
    await expect(call).rejects.toMatchObject({ code: "CANCELLED" });
    expect(await ends[0]).toMatchObject({ code: "CANCELLED" });
    // On a busy machine, the time may pass before the request reaches the replica.
    for (let timeoutMs = 50; ends.length < 2; timeoutMs *= 2) {
      await expect(model.infer({ x: [[1, 2]] }, { timeoutMs })).rejects.toMatchObject({
        code: "UNAVAILABLE",
      });
    }
    await ends[1];
    expect(contexts[1]!.signal.aborted).toBe(true);
  });

  test("keeps the state of a sequence at one replica", async () => {
    const counting = (triton: Triton) =>
      void triton.bind({
        modelName: "sum",
        inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
        outputs: [{ name: "total", dtype: "INT32", shape: [1] }],
        inferFunc: batch(({ x }, { requests }) => {
          const rows = requests.map(({ sequenceStart, correlationId }, i) => {
            const before = sequenceStart ? 0 : (totals.get(`${correlationId}`) ?? Number.NaN);
            totals.set(`${correlationId}`, before + x.get(i, 0)!);
            return totals.get(`${correlationId}`)!;
          });
          return { total: Int32Array.from(rows) };
        }),
        config: { sequence: { maxSequenceIdleMicroseconds: 60_000_000 } },
      });
    const totals = new Map<string, number>();
    const replicas = await Promise.all([startReplica(counting), startReplica(counting)]);
    const triton = localServer();
    const inferFunc = await remote({ urls: replicas.map(urlOf), model: "sum" });
    const model = triton.bind({ modelName: "far", inferFunc });
    const step = async (id: number, x: number, place: { start?: boolean; end?: boolean } = {}) => {
      const { total } = await model.infer({ x: [[x]] }, { sequence: { id, ...place } });
      return (total as { data: Int32Array }).data[0];
    };
    for (const id of [1, 2, 3]) expect(await step(id, 1, { start: true })).toBe(1);
    expect(await Promise.all([1, 2, 3].map((id) => step(id, 10)))).toEqual([11, 11, 11]);
    expect(await Promise.all([1, 2, 3].map((id) => step(id, 100, { end: true })))).toEqual([111, 111, 111]);
    await expect(step(1, 1)).rejects.toMatchObject({ code: "INVALID_ARG" });
  });
});

describe("a decoupled model behind a server", () => {
  const counting = (triton: Triton) =>
    void triton.bind({
      modelName: "count",
      inputs: [{ name: "to", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "n", dtype: "INT32", shape: [1] }],
      inferFunc: async function* ([request]: readonly { inputs: { to: { get(at: number): number } } }[]) {
        const to = request!.inputs.to.get(0);
        for (let n = 1; n <= to; n++) yield [{ n: [n] }];
        if (to === 0) throw new TritonError("INVALID_ARG", "nothing to count");
      } as never,
      config: { decoupled: true, batching: false },
    });

  test("streams its responses, and its error with the code", async () => {
    const replica = await startReplica(counting);
    const triton = localServer();
    const inferFunc = await remote({ urls: replica.grpcUrl, model: "count" });
    const model = triton.bind({ modelName: "far", inferFunc });
    const counted: number[] = [];
    for await (const { n } of model.stream({ to: [3] })) counted.push((n as { data: Int32Array }).data[0]!);
    expect(counted).toEqual([1, 2, 3]);
    const failing = async () => {
      for await (const _ of model.stream({ to: [0] }));
    };
    await expect(failing()).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: expect.stringContaining("nothing to count"),
    });
  });

  test("cannot be reached over HTTP", async () => {
    const { httpUrl } = await startReplica(counting);
    await expect(remote({ urls: httpUrl, model: "count" })).rejects.toMatchObject({
      code: "UNSUPPORTED",
      message: expect.stringContaining("expected an address of gRPC"),
    });
  });
});

describe("the remote backend of a repository", () => {
  function repository(config: string): string {
    const root = mkdtempSync(join(tmpdir(), "remote-"));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    mkdirSync(join(root, "far", "1"), { recursive: true });
    writeFileSync(join(root, "far", "config.pbtxt"), config);
    return root;
  }

  const parameter = (key: string, value: string) =>
    `parameters { key: "${key}" value { string_value: "${value}" } }\n`;

  const doubling = (triton: Triton) =>
    void triton.bind({
      ...DOUBLE,
      inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
      config: { maxBatchSize: 8 },
    });

  const backends = { remote: remoteBackend };

  test("a config.pbtxt names the replicas, and gets the rest from their server", async () => {
    const { grpcUrl } = await startReplica(doubling);
    const modelRepository = repository(
      `backend: "remote"\n${parameter("urls", `${grpcUrl}, ${grpcUrl}`)}${parameter("model_name", "double")}`,
    );
    const triton = localServer({ modelRepository, backends });
    await triton.ready();
    const { y } = await triton.infer("far", { x: [[1, 2]] });
    expect(Array.from((y as unknown as { data: Float32Array }).data)).toEqual([2, 4]);
    expect(serviceOf(triton).modelConfig("far", "")).toMatchObject({
      backend: "remote",
      maxBatchSize: 8,
      dynamicBatching: {},
      input: [{ name: "x", dataType: "TYPE_FP32", dims: [2] }],
      output: [{ name: "y", dataType: "TYPE_FP32", dims: [2] }],
    });
  });

  test("a config.pbtxt that contradicts the server is not loaded", async () => {
    const { grpcUrl } = await startReplica(doubling);
    const modelRepository = repository(
      `backend: "remote"\nmax_batch_size: 16\n${parameter("urls", grpcUrl)}${parameter("model_name", "double")}`,
    );
    const triton = localServer({ modelRepository, backends, exitOnError: false });
    await triton.ready().catch(() => {});
    const [entry] = await serviceOf(triton).repositoryIndex(false);
    expect(entry).toMatchObject({
      name: "far",
      state: "UNAVAILABLE",
      reason: expect.stringContaining("configuration specified max_batch_size 16"),
    });
  });

  test("reads the options from parameters and settings, and names what is wrong", () => {
    const source = (parameters: Readonly<Record<string, string>>, settings = {}) =>
      ({
        name: "far",
        settings,
        config: {
          parameters: Object.fromEntries(
            Object.entries(parameters).map(([key, stringValue]) => [key, { stringValue }]),
          ),
        },
      }) as unknown as Parameters<typeof remoteOptionsOf>[0];
    const given = { urls: "http://a:8000,http://b:8000", idempotent: "true", hedge_after_ms: "20" };
    expect(remoteOptionsOf(source(given, { "access-token": "secret" }))).toEqual({
      urls: ["http://a:8000", "http://b:8000"],
      model: "far",
      idempotent: true,
      hedgeAfterMs: 20,
      accessToken: "secret",
    });
    expect(() => remoteOptionsOf(source({}))).toThrow(
      "parameter 'urls' of model 'far': expected addresses of servers",
    );
    expect(() => remoteOptionsOf(source({ ...given, retries: "two" }))).toThrow(
      "expected a number, got 'two'",
    );
    expect(() => remoteOptionsOf(source({ ...given, idempotent: "yes" }))).toThrow(
      "expected true or false, got 'yes'",
    );
  });
});
