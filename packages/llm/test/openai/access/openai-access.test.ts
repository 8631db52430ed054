import { createHash } from "node:crypto";
import { TritonError } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { type OpenAiOptions, openai } from "../../../src/openai/index.js";
import { openAiHandler } from "../../../src/openai/openai-handler.js";
import { bindText, newTriton, post, say, serveOpenAi } from "../support/openai-server.js";

async function serve(options: OpenAiOptions, security = {}) {
  const triton = newTriton({ security });
  bindText(triton, "m", () => say("fine"));
  const url = await serveOpenAi(triton, options);
  const status = async (path: string, key?: string, headers: Record<string, string> = {}) => {
    const sent = { ...(key && { authorization: `Bearer ${key}` }), ...headers };
    const body = { model: "m", prompt: "x" };
    const isGet = !path.endsWith("completions") && !path.endsWith("load");
    const answer = isGet
      ? await fetch(url + path, { headers: sent })
      : await post(url + path, body, { headers: sent });
    return answer.status;
  };
  return { url, status };
}

describe("API keys", () => {
  it("open all endpoints, or those of their groups; health needs none", async () => {
    const hash = createHash("sha256").update("hashed").digest("hex");
    const { url, status } = await serve({
      apiKeys: ["plain", { key: `sha256:${hash}` }, { key: "lists", groups: ["model-repository"] }],
    });
    expect(await status("/v1/completions", "plain")).toBe(200);
    expect(await status("/v1/completions", "hashed")).toBe(200);
    expect(await status("/v1/models", "lists")).toBe(200);
    expect(await status("/v1/completions", "lists")).toBe(403);
    expect(await status("/v1/completions", "wrong")).toBe(401);
    expect(await status("/v1/completions", `sha256:${hash}`)).toBe(401);
    expect(await status("/metrics")).toBe(401);
    expect(await status("/health/ready")).toBe(200);
    const refused = await fetch(`${url}/v1/models`);
    expect(refused.headers.get("www-authenticate")).toBe("Bearer");
    expect(await refused.json()).toEqual({
      error: {
        message: "you did not provide an API key: expected the header 'Authorization: Bearer <key>'",
        type: "invalid_request_error",
        param: null,
        code: "invalid_api_key",
      },
      detail: expect.any(String),
    });
  });

  it("refuses options that would leave an endpoint open", () => {
    const wrong = [
      { apiKeys: [""] },
      { publicGroups: ["all"] },
      { apiKeys: [{ key: "k", groups: ["everything"] }] },
      { restrictions: { chat: { header: "k", value: "v" } } },
      { restrictions: { inference: { header: "k", value: "" } } },
    ] as unknown as OpenAiOptions[];
    const { service } = newTriton();
    for (const options of wrong) expect(() => openAiHandler(service, options)).toThrow(TritonError);
    expect(() => openai({ apiKey: "k" } as OpenAiOptions)).toThrow("apiKeys");
  });
});

describe("restrictions of groups", () => {
  it("need their header, as in Triton's OpenAI frontend", async () => {
    const { url, status } = await serve({ restrictions: { inference: { header: "Admin-Key", value: "s" } } });
    expect(await status("/v1/completions")).toBe(401);
    expect(await status("/v1/completions", undefined, { "admin-key": "s" })).toBe(200);
    expect(await status("/v1/models")).toBe(200);
    expect(await (await post(`${url}/v1/completions`, {})).json()).toEqual({
      error: {
        message: "This API is restricted, expecting header 'Admin-Key' with valid value",
        type: "authentication_error",
        param: null,
        code: "invalid_auth",
      },
      detail: "This API is restricted, expecting header 'Admin-Key' with valid value",
    });
  });
});

describe("the security of the Triton", () => {
  it("holds here too; the access token may come as the API key", async () => {
    const { status } = await serve(
      {},
      { accessToken: "token", restrictedEndpoints: ["inference", "model-repository"] },
    );
    expect(await status("/v1/completions")).toBe(403);
    expect(await status("/v1/completions", "token")).toBe(200);
    expect(await status("/v1/completions", undefined, { "triton-access-token": "token" })).toBe(200);
    expect(await status("/v1/models")).toBe(200);
    expect(await status("/v1/models/m/load")).toBe(403);
  });

  it("asks security.authenticate", async () => {
    const seen: unknown[] = [];
    const { status } = await serve(
      {},
      {
        authenticate: ({ headers, path, group }: { headers: Headers; path: string; group: string }) => {
          seen.push([path, group]);
          if (headers.get("authorization") === "Bearer good") return;
          throw new TritonError("UNAVAILABLE", "who are you?", { reason: "UNAUTHENTICATED" });
        },
      },
    );
    expect(await status("/v1/completions", "bad")).toBe(401);
    expect(await status("/v1/completions", "good")).toBe(200);
    expect(seen).toEqual([
      ["/v1/completions", "inference"],
      ["/v1/completions", "inference"],
    ]);
  });
});
