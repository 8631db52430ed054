import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import { sample } from "@tritonjs/core";
import { otlp } from "@tritonjs/core/opentelemetry/otlp";
import { expect, it, onTestFinished } from "vitest";
import { openTriton } from "./support/open-triton.js";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;

it("a request with a traceparent becomes part of that trace, over HTTP and gRPC", async () => {
  const names: string[] = [];
  const collector = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const [{ scopeSpans }] = JSON.parse(text).resourceSpans;
    for (const span of scopeSpans[0].spans) {
      if (span.traceId === traceId)
        names.push(span.name, ...span.events.map(({ name }: { name: string }) => name));
    }
    response.end();
  });
  collector.listen(0);
  await once(collector, "listening");
  onTestFinished(() => void collector.close());
  const url = `http://localhost:${(collector.address() as AddressInfo).port}`;

  const triton = openTriton({
    trace: { rate: 0 },
    tracer: await otlp({ url, resource: { "service.name": "vision" } }),
  });
  triton.bind({
    modelName: "m",
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    config: { batching: false },
    inferFunc: sample(({ x }) => ({ y: x })),
  });
  const { addresses } = await triton.serve();
  const infer = async (headers: Record<string, string>) => {
    const body = '{"inputs":[{"name":"x","datatype":"INT32","shape":[1],"data":[1]}]}';
    const answer = await fetch(`${addresses.http!.url}/v2/models/m/infer`, { method: "POST", body, headers });
    return answer.json();
  };
  await infer({});
  await infer({ Traceparent: traceparent });
  const client = new InferenceServerClient(addresses.grpc!.url);
  await client.infer("m", { inputs: { x: Int32Array.of(1) }, headers: { traceparent } });
  await client.close();
  const scraped = await fetch(`${addresses.metrics!.url}/metrics`, {
    headers: { accept: "application/openmetrics-text" },
  });
  expect(scraped.headers.get("content-type")).toContain("application/openmetrics-text; version=1.0.0");
  expect(await scraped.text()).toMatch(
    new RegExp(`^tritonjs_request_duration_seconds_bucket.*} \\d+ # {trace_id="${traceId}"} [0-9.e-]+ `, "m"),
  );
  await triton.close();

  const happened = ["REQUEST_START", "QUEUE_START", "REQUEST_END"];
  const computed = ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"];
  const http = [
    "HTTP_RECV_START",
    "HTTP_RECV_END",
    "INFER_RESPONSE_COMPLETE",
    "HTTP_SEND_START",
    "HTTP_SEND_END",
  ];
  const grpc = ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "INFER_RESPONSE_COMPLETE", "GRPC_SEND_START"];
  // The spans of a request end from the inside to the outside.
  const inner = ["compute", ...computed, "m", ...happened];
  expect(names).toEqual([
    ...[...inner, "InferRequest", ...http],
    ...[...inner, "InferRequest", ...grpc, "GRPC_SEND_END"],
  ]);
});
