import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InferenceServerClient as GrpcClient, createClient as grpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient, createClient as httpClient } from "@tritonjs/client/http";
import { openRecording } from "@tritonjs/client/recording";
import { batch, Triton, TritonError } from "@tritonjs/core";
import { fakeModel } from "@tritonjs/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const specs = {
  inputs: [
    { name: "x", dtype: "FP32", shape: [2] },
    { name: "ids", dtype: "INT64", shape: [1] },
    { name: "raw", dtype: "BYTES", shape: [1] },
  ],
  outputs: [
    { name: "y", dtype: "FP32", shape: [2] },
    { name: "id", dtype: "INT64", shape: [1] },
    { name: "raw", dtype: "BYTES", shape: [1] },
  ],
} as const;

function bindModels(triton: Triton) {
  return {
    echo: triton.bind({
      modelName: "echo",
      ...specs,
      inferFunc: batch(({ x, ids, raw }) => {
        if (x.get(0, 0) === -1) throw new TritonError("INVALID_ARG", "minus one is refused");
        return { y: x, id: ids, raw };
      }),
    }),
    count: triton.bind({
      modelName: "count",
      inputs: [{ name: "to", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "n", dtype: "INT32", shape: [1] }],
      inferFunc: async function* ([request]) {
        for (let n = 1; n <= request!.inputs.to.get(0); n++) yield [{ n: [n] }];
      },
      config: { decoupled: true, batching: false },
    }),
  };
}

type Models = ReturnType<typeof bindModels>;

let triton: Triton;
let urls: { http: string; grpc: string };
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "recording-"));
  triton = new Triton();
  bindModels(triton);
  const { http } = await import("@tritonjs/http");
  const { grpc } = await import("@tritonjs/grpc");
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
  urls = { http: addresses.http!.url, grpc: addresses.grpc!.url };
});
afterEach(async () => {
  await triton.close();
  await rm(folder, { recursive: true });
});

const inputs = { x: [0.1, Number.NaN], ids: [2n ** 60n], raw: [Uint8Array.of(0xff, 0)] };

describe.each(["http", "grpc"] as const)("a recording of a client over %s", (protocol) => {
  const open = async (mode: "record" | "replay", url = urls[protocol]) => {
    const file = join(folder, "calls.json");
    if (protocol === "http") {
      const recording = await openRecording({
        file,
        mode,
        open: () => new HttpClient(url, { headers: { authorization: "secret" } }),
      });
      return { recording, client: httpClient<Models>(recording.client) };
    }
    const recording = await openRecording({ file, mode, open: () => new GrpcClient(url) });
    return { recording, client: grpcClient<Models>(recording.client) };
  };

  async function useClient({ client }: Awaited<ReturnType<typeof open>>, x = inputs.x) {
    const echo = client.model("echo");
    const outputs = await echo.inferSample({ ...inputs, x }, { timeoutMs: 60_000 });
    const failed = await echo.inferSample({ ...inputs, x: [-1, 0] }).catch((error: unknown) => error);
    const counted: number[] = [];
    for await (const { n } of client.model("count").streamSample({ to: 3 })) counted.push(n.get(0));
    const { y, id, raw } = outputs;
    return [
      y.toArray(),
      id.get(0),
      [...raw.data[0]!],
      (failed as TritonError).code,
      (failed as Error).message,
      counted,
    ];
  }

  it("answers the same calls without a server", async () => {
    const recorded = await open("record");
    const seen = await useClient(recorded);
    expect(seen.at(-1)).toEqual([1, 2, 3]);
    await recorded.recording.done();
    await triton.close();
    const text = await readFile(join(folder, "calls.json"), "utf8");
    expect(text).not.toContain("secret");
    const replayed = await open("replay", "127.0.0.1:1");
    expect(await useClient(replayed)).toEqual(seen);
    await replayed.recording.done();
  });

  it("says which call differs, and which was not made", async () => {
    const recorded = await open("record");
    await useClient(recorded);
    await recorded.recording.done();
    const file = join(folder, "calls.json");
    const replayed = await open("replay");
    await expect(useClient(replayed, [0.5, 1])).rejects.toThrow(
      `replay of ${file}: call 1, infer() of model 'echo' differs from recorded call 1: input 'x': at [0, 0] expected 0.10000000149011612, got 0.5; 2 of 2 elements differ`,
    );
    const echo = replayed.client.model("echo");
    await echo.inferSample(inputs);
    await expect(echo.inferSample(inputs)).rejects.toThrow(
      "call 3, infer() of model 'echo': expected 1 such calls, got one more",
    );
    await expect(echo.inferSample(inputs, { priority: 1 })).rejects.toThrow(
      /call 4.* differs from recorded call 2: input 'x'/,
    );
    await expect(replayed.recording.done()).rejects.toThrow(
      /expected infer\(\) of model 'echo', which was not called, and 1 more/,
    );
  });
});

it("a fake model answers the inferences of a recording", async () => {
  const file = join(folder, "calls.json");
  const recording = await openRecording({ file, mode: "record", open: () => new HttpClient(urls.http) });
  await httpClient<Models>(recording.client)
    .model("echo")
    .inferSample({ ...inputs, x: [3, 4] });
  await recording.done();
  const { calls } = JSON.parse(await readFile(file, "utf8")) as { calls: { call: string; model?: string }[] };
  const recorded = calls.filter(({ call, model }) => call === "infer" && model === "echo") as never;
  await using other = new Triton();
  const echo = other.bind({
    modelName: "echo",
    inferFunc: fakeModel({ ...specs, recorded }),
    config: { batching: true },
  });
  const { y } = await echo.inferSample({ ...inputs, x: [3, 4] });
  expect(y.toArray()).toEqual([3, 4]);
});

it("refuses files that are not recordings, and modes that it does not have", async () => {
  const open = () => new HttpClient("localhost:1");
  await expect(openRecording({ file: join(folder, "none.json"), mode: "replay", open })).rejects.toThrow(
    /cannot replay .*none\.json: .*ENOENT.*: record it with mode: "record"/,
  );
  await writeFile(join(folder, "other.json"), "[]");
  await expect(openRecording({ file: join(folder, "other.json"), mode: "replay", open })).rejects.toThrow(
    "it has no list of calls",
  );
  await expect(openRecording({ file: "x", mode: "off" as "record", open })).rejects.toThrow(
    `mode: expected "record" or "replay", got 'off'`,
  );
});
