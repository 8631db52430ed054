import { DecoupledModelClient } from "@tritonjs/client/grpc";
import { Triton } from "@tritonjs/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { textGenerator } from "../../src/index.js";

let triton: Triton;
let url: string;
let client: DecoupledModelClient;
let ended = deferred();

function deferred() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Repeats the words of the prompt; after the word "forever" it never ends; after "fail" it fails. */
async function* repeat({ prompt = "" }: { prompt: string | undefined }) {
  try {
    for (const word of prompt.split(" ")) {
      if (word === "fail") throw new Error("the engine failed");
      do yield `${word} `;
      while (word === "forever");
    }
  } finally {
    if (prompt.includes("forever")) ended.resolve();
  }
}

beforeAll(async () => {
  triton = new Triton({ httpPort: 0, grpcPort: 0, metricsPort: 0 });
  triton.bind({ modelName: "repeat", inferFunc: textGenerator(repeat) });
  const { addresses } = await triton.serve();
  url = addresses.http!.url;
  client = new DecoupledModelClient(addresses.grpc!.url.replace(/^\w+:\/\//, ""), "repeat");
});
afterAll(async () => {
  await client.close();
  await triton.close();
});

function post(route: string, body: object, signal?: AbortSignal) {
  const init = { method: "POST", body: JSON.stringify(body), ...(signal && { signal }) };
  return fetch(`${url}/v2/models/repeat/${route}`, init);
}

/** The events of a stream. */
async function events(answer: Response): Promise<unknown[]> {
  const parts = (await answer.text()).split("\n\n").filter(Boolean);
  return parts.map((part) => JSON.parse(part.slice("data: ".length)));
}

describe("a text generator", () => {
  it("answers generate", async () => {
    const answer = await post("generate", { text_input: "a b", max_tokens: 1 });
    expect(await answer.json()).toEqual({ model_name: "repeat", model_version: "1", text_output: "a ba " });
  });

  it("streams server-sent events, and ends with the client", async () => {
    const answer = await post("generate_stream", { text_input: "a b c", stream: true, stop: "c" });
    expect(answer.headers.get("content-type")).toContain("text/event-stream");
    expect(await events(answer)).toMatchObject([{ text_output: "a " }, { text_output: "b " }]);
    ended = deferred();
    const controller = new AbortController();
    const endless = await post("generate_stream", { text_input: "forever", stream: true }, controller.signal);
    const reader = endless.body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toContain("forever ");
    controller.abort();
    await ended.promise;
  });

  it("ends a stream with an error event, and refuses a request before its stream", async () => {
    const answer = await post("generate_stream", { text_input: "a fail", stream: true });
    expect(answer.status).toBe(200);
    expect(await events(answer)).toMatchObject([{ text_output: "a " }, { error: "the engine failed" }]);
    expect((await post("generate_stream", { text_input: "fail", stream: true })).status).toBe(500);
    expect((await post("generate_stream", { stream: true })).status).toBe(400);
  });

  it("streams over gRPC, and ends with the client", async () => {
    const texts: string[] = [];
    for await (const { text_output } of client.inferSample({ text_input: ["a b"], stream: [true] })) {
      texts.push(new TextDecoder().decode(text_output!.data[0] as Uint8Array));
    }
    expect(texts).toEqual(["a ", "b "]);
    ended = deferred();
    for await (const _ of client.inferSample({ text_input: ["forever"], stream: [true] })) break;
    await ended.promise;
  });
});
