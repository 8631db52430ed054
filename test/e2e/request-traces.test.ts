import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { sample, type Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { fetchHandler, toNodeListener } from "@tritonjs/http";
import { describe, expect, it, onTestFinished } from "vitest";
import { openGrpcJsServer } from "../support/grpc-js-server.js";
import { namesOf, readTraces, type TracedRequest, traceFile } from "../support/trace-file.js";
import { HeldModel } from "./support/held-model.js";
import { openTriton, until } from "./support/open-triton.js";

const computed = ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"];
const queued = ["REQUEST_START", "QUEUE_START"];

const x = { name: "x", dtype: "INT32", shape: [1] } as const;
const y = { name: "y", dtype: "INT32", shape: [1] } as const;

function traced(): { triton: Triton; traces: () => Promise<TracedRequest[]> } {
  const file = traceFile();
  const triton = openTriton({ trace: { level: "TIMESTAMPS", rate: 1, file } });
  const config = { batching: false };
  triton.bind({
    modelName: "double",
    inputs: [x],
    outputs: [y],
    config,
    inferFunc: sample((inputs) => {
      if (inputs.x.data[0]! < 0) throw new Error("negative");
      return { y: inputs.x.data.map((value) => 2 * value) };
    }),
  });
  triton.bind({
    modelName: "stream",
    inputs: [x],
    outputs: [y],
    config: { ...config, decoupled: true },
    inferFunc: sample(function* (inputs) {
      for (let i = 0; i < 3; i++) yield { y: inputs.x };
    }),
  });
  return {
    triton,
    traces: async () => {
      await triton.close();
      return readTraces(file);
    },
  };
}

const body = (value: number) =>
  JSON.stringify({ id: "r", inputs: [{ name: "x", datatype: "INT32", shape: [1], data: [value] }] });

describe("tracing over HTTP", () => {
  const received = ["HTTP_RECV_START", "HTTP_RECV_END"];
  const sent = ["HTTP_SEND_START", "HTTP_SEND_END"];

  it("covers an inference from its first byte to the last byte of its answer", async () => {
    const { triton, traces } = traced();
    const { addresses } = await triton.serve();
    await (
      await fetch(`${addresses.http!.url}/v2/models/double/infer`, { method: "POST", body: body(3) })
    ).text();
    const [trace, ...more] = await traces();
    expect(more).toEqual([]);
    expect(trace).toMatchObject({ id: 1, model: "double", requestId: "r", parentId: undefined });
    expect(namesOf(trace!)).toEqual([
      ...received,
      ...queued,
      ...computed,
      "REQUEST_END",
      "INFER_RESPONSE_COMPLETE",
      ...sent,
    ]);
  });

  it("covers failed and malformed inferences until their error answer", async () => {
    const { triton, traces } = traced();
    const { addresses } = await triton.serve();
    const url = `${addresses.http!.url}/v2/models/double/infer`;
    for (const text of [body(-1), "{"]) await (await fetch(url, { method: "POST", body: text })).text();
    const [failed, bad] = await traces();
    expect(namesOf(failed!)).toEqual([
      ...received,
      ...queued,
      ...computed,
      "REQUEST_END",
      "INFER_RESPONSE_COMPLETE",
      ...sent,
    ]);
    expect(namesOf(bad!)).toEqual([...received, ...sent]);
  });

  it("covers each response of a stream", async () => {
    const { triton, traces } = traced();
    const { addresses } = await triton.serve();
    const url = `${addresses.http!.url}/v2/models/stream/generate_stream`;
    await (await fetch(url, { method: "POST", body: '{"x":[1]}' })).text();
    const [trace] = await traces();
    const names = namesOf(trace!);
    expect(names.filter((name) => name === "INFER_RESPONSE_COMPLETE")).toHaveLength(3);
    expect([names[0], names.at(-1)]).toEqual(["HTTP_RECV_START", "HTTP_SEND_END"]);
    expect(new Set(names)).toEqual(
      new Set([...received, ...queued, ...computed, "REQUEST_END", "INFER_RESPONSE_COMPLETE", ...sent]),
    );
  });

  it("writes an inference whose client leaves", async () => {
    const { triton, traces } = traced();
    const held = new HeldModel(triton, { batching: false });
    const { addresses } = await triton.serve();
    const abort = new AbortController();
    const answer = fetch(`${addresses.http!.url}/v2/models/held/infer`, {
      method: "POST",
      body: body(1),
      signal: abort.signal,
    });
    await held.reached(1);
    abort.abort();
    await expect(answer).rejects.toThrow();
    await until(() => held.signals[0]!.aborted);
    held.release();
    const [trace] = await traces();
    expect(namesOf(trace!).slice(0, 5)).toEqual([...received, ...queued, "REQUEST_END"]);
  });

  it("covers an inference of the fetch handler", async () => {
    const { triton, traces } = traced();
    const server = createServer(toNodeListener(fetchHandler(triton)));
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, resolve));
    const { port } = server.address() as AddressInfo;
    const client = new HttpClient(`http://localhost:${port}`);
    onTestFinished(() => client.close());
    const url = `http://localhost:${port}/v2/models/double/infer`;
    await (await fetch(url, { method: "POST", body: body(3) })).text();
    const [trace] = await traces();
    expect(namesOf(trace!).slice(-2)).toEqual(sent);
  });
});

describe("tracing over gRPC", () => {
  const received = ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END"];
  const sent = ["GRPC_SEND_START", "GRPC_SEND_END"];

  async function connect(triton: Triton, transport: "http2" | "grpc-js" = "http2"): Promise<GrpcClient> {
    const client = new GrpcClient(await urlOver(transport, triton));
    onTestFinished(() => client.close());
    return client;
  }

  async function urlOver(transport: "http2" | "grpc-js", triton: Triton): Promise<string> {
    if (transport === "http2") {
      const { addresses } = await triton.serve({ frontends: [grpc({ port: 0 })] });
      return addresses.grpc!.url;
    }
    const { url, close } = await openGrpcJsServer(triton);
    onTestFinished(close);
    return url;
  }

  it.each(["http2", "grpc-js"] as const)(
    "covers an inference from the wait for it to its answer (%s)",
    async (transport) => {
      const { triton, traces } = traced();
      const client = await connect(triton, transport);
      for (let i = 0; i < 2; i++) await client.infer("double", { inputs: { x: Int32Array.of(3) }, id: "g" });
      await expect(client.infer("double", { inputs: { x: Int32Array.of(-1) } })).rejects.toThrow();
      await client.close();
      const found = await traces();
      expect(found[0]).toMatchObject({ model: "double", requestId: "g" });
      for (const trace of found) {
        expect(namesOf(trace)).toEqual([
          ...received,
          ...queued,
          ...computed,
          "REQUEST_END",
          "INFER_RESPONSE_COMPLETE",
          ...sent,
        ]);
      }
      expect(found).toHaveLength(3);
    },
  );

  it("covers each request of a stream, with the first of its responses", async () => {
    const { triton, traces } = traced();
    const client = await connect(triton);
    const inputs = { x: Int32Array.of(1) };
    const requests = ["stream", "double", "double"].map((modelName) => ({ modelName, inputs }));
    const refused = { modelName: "double", inputs: {} };
    let answers = 0;
    for await (const _ of client.streamInfer([...requests, refused])) answers++;
    expect(answers).toBe(3 + 2 + 1);
    const found = await traces();
    expect(found.map(({ model }) => model)).toEqual(["stream", "double", "double", undefined]);
    for (const trace of found.slice(0, 3)) {
      const names = namesOf(trace);
      expect([names[0], names.at(-1)]).toEqual(["GRPC_WAITREAD_START", "GRPC_SEND_END"]);
      const all = [...received, ...queued, ...computed, "REQUEST_END", "INFER_RESPONSE_COMPLETE", ...sent];
      expect([...names].sort()).toEqual(all.sort());
    }
    expect(namesOf(found[3]!)).toEqual([...received, "GRPC_SEND_END"]);
  });
});

it("clients change trace settings over both protocols", async () => {
  const { triton } = traced();
  const { addresses } = await triton.serve();
  const http = new HttpClient(addresses.http!.url);
  const rpc = new GrpcClient(addresses.grpc!.url);
  onTestFinished(async () => {
    await http.close();
    await rpc.close();
  });
  expect(await http.updateTraceSettings({ trace_rate: "7" }, { modelName: "double" })).toMatchObject({
    trace_rate: "7",
  });
  expect(await rpc.getTraceSettings({ modelName: "double" })).toMatchObject({ trace_rate: ["7"] });
  await rpc.updateTraceSettings({ trace_rate: null }, { modelName: "double" });
  expect(await http.getTraceSettings({ modelName: "double" })).toMatchObject({ trace_rate: "1" });
});
