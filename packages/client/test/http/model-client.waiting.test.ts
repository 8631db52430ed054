import { describe, expect, it, onTestFinished, vi } from "vitest";
import { InferenceServerClient, ModelClient } from "../../src/http/index.js";
import { fakeFetch, json } from "./support/fake-fetch.js";
import { answer, config, failure } from "./support/int-model.js";
import { bindIdentity, deadUrl, serve, serveByHand } from "./support/serve.js";

describe("waiting for a model", () => {
  it("continues until the server is up and the model is ready", async () => {
    const { fetch, sent } = fakeFetch(
      () => Promise.reject(new TypeError("fetch failed")),
      json({ error: "unknown model" }, 404),
      json({}, 400),
      json({}),
    );
    await new ModelClient("host:1", "m", { fetch, retries: 0 }).waitForModel();
    expect(sent).toHaveLength(4);
  });

  it("ends at its timeout and names the reason", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { fetch } = fakeFetch(() => Promise.reject(new TypeError("fetch failed")));
    const client = new ModelClient("host:1", "m", { fetch, initTimeoutMs: 60, retries: 0 });
    const failures = [
      failure(client.waitForServer()),
      failure(client.waitForModel()),
      failure(client.inferSample({ IN: [1] })),
    ];
    await vi.advanceTimersByTimeAsync(60);
    for (const error of await Promise.all(failures)) {
      expect(error.code).toBe("UNAVAILABLE");
      expect(error.message).toMatch(/^(the server|model 'm') was not ready within 60 ms$/);
      expect((error.cause as Error).message).toContain("fetch failed");
    }
  });

  it("ends at once on an error that waiting cannot change", async () => {
    const { fetch, sent } = fakeFetch(json({ error: "This API is restricted" }, 500));
    const client = new ModelClient("host:1", "m", { fetch });
    expect(await failure(client.waitForServer())).toMatchObject({ code: "INTERNAL" });
    expect(sent).toHaveLength(1);
  });

  it("is aborted only for the call with the signal", async () => {
    const waiting: ((response: Response) => void)[] = [];
    const fetch = (url: string) =>
      url.endsWith("/ready")
        ? new Promise<Response>((resolve) => waiting.push(resolve))
        : Promise.resolve(json(url.endsWith("/config") ? config : answer)());
    const client = new ModelClient("host:1", "m", { fetch });
    const controller = new AbortController();
    const given = failure(client.inferSample({ IN: [1] }, { signal: controller.signal }));
    const other = client.inferSample({ IN: [1] });
    controller.abort();
    expect(await given).toMatchObject({ code: "CANCELLED" });
    waiting[0]!(new Response());
    expect((await other).OUT!.get(0)).toBe(1);
    expect(waiting).toHaveLength(1);
  });
});

describe("a closed model client", () => {
  it("rejects new calls and calls that wait for the model, and finishes the others", async () => {
    let release: (() => void) | undefined;
    const { url } = await serveByHand((request, response) => {
      const body = request.url!.endsWith("/infer") ? answer : config;
      const respond = () => response.end(JSON.stringify(body));
      request.resume();
      if (body === answer) release = respond;
      else respond();
    });
    const client = new ModelClient(url, "m");
    const running = client.inferSample({ IN: [1] });
    while (release === undefined) await new Promise(setImmediate);
    const closing = client.close();
    expect(await failure(client.inferSample({ IN: [1] }))).toMatchObject({
      code: "UNAVAILABLE",
      message: "the client is closed",
    });
    release();
    expect((await running).OUT!.get(0)).toBe(1);
    await closing;
    await client.close();

    const never = new ModelClient(await deadUrl(), "m");
    const waiting = failure(never.inferSample({ IN: [1] }));
    await never.close();
    expect(await waiting).toMatchObject({ code: "UNAVAILABLE", message: "the client is closed" });
  });

  it("does not close a client that it was given", async () => {
    const url = await serve((triton) => bindIdentity(triton, "m", "INT32", [2]));
    const server = new InferenceServerClient(url);
    {
      await using client = new ModelClient(server, "m");
      await client.inferSample({ IN: [1, 2] });
    }
    expect(await server.isServerLive()).toBe(true);
  });
});
