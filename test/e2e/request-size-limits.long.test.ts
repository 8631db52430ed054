import { connect } from "node:net";
import { sample, type Triton } from "@tritonjs/core";
import { fetchHandler, http } from "@tritonjs/http";
import { describe, expect, it } from "vitest";
import type { InferCall, Way } from "../conformance/clients/client.js";
import { openTriton, serveAndConnect } from "./support/open-triton.js";

const MIB = 1024 * 1024;
const LIMIT = 64 * MIB;

describe("a request body far over the limit of 64 MiB", () => {
  it("is rejected over HTTP from its declared length, before any of it is sent", async () => {
    const triton = openTriton();
    bindLength(triton);
    const { addresses } = await triton.serve();
    const head = [
      "POST /v2/models/length/infer HTTP/1.1",
      "Host: localhost",
      `Content-Length: ${9 * LIMIT}`,
      "",
      "",
    ].join("\r\n");
    const answer = await sendRaw(addresses.http!.port, head);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain(
      `request JSON size of ${9 * LIMIT} bytes exceeds the maximum allowed input size of ${8 * LIMIT + 65_536} bytes`,
    );
  });

  it("is limited by httpMaxInputSize", async () => {
    const triton = openTriton({ httpMaxInputSize: 1000 });
    bindLength(triton);
    const { addresses } = await triton.serve();
    const head =
      "POST /v2/models/length/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n";
    expect(await sendRaw(addresses.http!.port, head)).toContain("maximum allowed input size of 73536 bytes");
  });

  it.each<{ way: Way; size: number }>([
    { way: "HTTP binary", size: LIMIT - 4 },
    { way: "gRPC raw", size: LIMIT - 4 },
    { way: "gRPC typed", size: LIMIT - 4 },
  ])("is accepted with $size bytes over $way", async ({ way, size }) => {
    const triton = openTriton();
    bindLength(triton);
    const client = (await serveAndConnect(triton)).find((one) => one.way === way)!;
    const call: InferCall = {
      model: "length",
      inputs: [{ name: "x", datatype: "BYTES", shape: [1], elements: [Buffer.alloc(size)] }],
    };
    expect((await client.infer(call)).outputs[0]!.elements).toEqual([size]);
  });
});

describe("a request that is too large names the option", () => {
  const body = (size: number) => ({ method: "POST", body: new Uint8Array(size) });
  const textOf = async (response: Response) => ((await response.json()) as { error: string }).error;
  const lastWords = (text: string) => text.slice(text.indexOf("Use "));

  it("of new Triton for the frontends that serve() opens", async () => {
    const triton = openTriton({ httpMaxInputSize: 10 });
    bindLength(triton);
    const { addresses } = await triton.serve();
    const answer = await fetch(`${addresses.http!.url}/v2/models/length/infer`, body(100_000));
    expect(lastWords(await textOf(answer))).toBe(
      "Use new Triton({ httpMaxInputSize }) to increase the limit.",
    );
  });

  it.each([
    [{}, "http({ maxInputSize })"],
    // As `tritonjs serve` sets it.
    [{ maxInputSizeName: "--http-max-input-size" }, "--http-max-input-size"],
  ])("of http(%j)", async (options, name) => {
    const triton = openTriton();
    bindLength(triton);
    const frontend = http({ port: 0, maxInputSize: 10, ...options });
    const { addresses } = await triton.serve({ frontends: [frontend] });
    const answer = await fetch(`${addresses.http!.url}/v2/models/length/infer`, body(100_000));
    expect(lastWords(await textOf(answer))).toBe(`Use ${name} to increase the limit.`);
  });

  it("of fetchHandler", async () => {
    const triton = openTriton();
    bindLength(triton);
    await triton.ready();
    const handler = fetchHandler(triton, { maxInputSize: 10 });
    const answer = await handler(new Request("http://host/v2/models/length/infer", body(100_000)));
    expect(lastWords(await textOf(answer))).toBe(
      "Use fetchHandler(triton, { maxInputSize }) to increase the limit.",
    );
  });
});

/** A model that returns the length of its only element. */
function bindLength(triton: Triton): void {
  triton.bind({
    modelName: "length",
    inputs: [{ name: "x", dtype: "BYTES", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: sample(({ x }) => ({ y: [x.data[0]!.byteLength] })),
  });
}

/** Sends only `text` and resolves with the head and body of the answer. */
function sendRaw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect(port, "localhost", () => socket.write(text));
    socket.setEncoding("utf8");
    socket.on("data", (part: string) => {
      received += part;
      if (!/\r\n\r\n\{.*\}$/s.test(received)) return;
      socket.destroy();
      resolve(received);
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`closed after '${received}'`)));
  });
}
