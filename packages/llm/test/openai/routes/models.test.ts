import { describe, expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../../../test/support/repository-on-disk.js";
import { bindText, newTriton, post, say, serveOpenAi } from "../support/openai-server.js";

describe("GET /v1/models", () => {
  it("lists the models that are ready, and describes one", async () => {
    const triton = newTriton({ security: { restrictedEndpoints: [] } });
    bindText(triton, "m", () => say("fine"));
    bindText(triton, "n-2", () => say("fine"));
    const url = await serveOpenAi(triton);
    const model = (id: string) => ({
      id,
      object: "model",
      created: expect.any(Number),
      owned_by: "Triton Inference Server",
    });
    expect(await (await fetch(`${url}/v1/models`)).json()).toEqual({
      object: "list",
      data: [model("m"), model("n-2")],
    });
    for (const id of ["m", "n-2", "n%2D2"]) {
      expect(await (await fetch(`${url}/v1/models/${id}`)).json()).toEqual(model(decodeURIComponent(id)));
    }
    const unknown = await fetch(`${url}/v1/models/none`);
    expect(unknown.status).toBe(404);
    expect(await unknown.json()).toEqual({
      error: {
        message: "Unknown model: none",
        type: "invalid_request_error",
        param: "model",
        code: "model_not_found",
      },
      detail: "Unknown model: none",
    });
    const load = await post(`${url}/v1/models/m/unload`, {});
    expect(load.status).toBe(400);
    expect(await load.json()).toMatchObject({
      error: { message: "Model load/unload requires --model-control-mode=explicit" },
    });
  });
});

describe("GET /health/ready and /metrics", () => {
  it("answer as Triton's OpenAI frontend does", async () => {
    const triton = newTriton();
    const url = await serveOpenAi(triton);
    const ready = await fetch(`${url}/health/ready`);
    expect([ready.status, await ready.text()]).toEqual([200, ""]);
    expect(await (await fetch(`${url}/metrics`)).text()).toContain("nv_cpu_utilization");
  });
});

describe("a model of a repository", () => {
  it("is loaded and unloaded by clients in explicit mode, and has the chat template of its directory", async () => {
    const template = "{% for message in messages %}{{ message.role }}: {{ message.content }}{% endfor %}";
    await using repository = await RepositoryOnDisk.create({
      "echo/config.pbtxt": identityConfig("", "TYPE_STRING"),
      "echo/1/tokenizer_config.json": JSON.stringify({ chat_template: template }),
    });
    const triton = newTriton({
      modelRepository: repository.path,
      modelControlMode: "explicit",
      security: { restrictedEndpoints: [] },
    });
    const url = await serveOpenAi(triton);
    const change = async (action: string, model = "echo") => {
      const answer = await post(`${url}/v1/models/${model}/${action}`, {});
      return [answer.status, await answer.json()];
    };
    const chat = () =>
      post(`${url}/v1/chat/completions`, { model: "echo", messages: [{ role: "user", content: "Hello" }] });
    expect((await chat()).status).toBe(404);
    expect(await change("load")).toMatchObject([200, { id: "echo", object: "model" }]);
    expect(await change("load")).toMatchObject([400, { error: { code: "already_loaded" } }]);
    expect(await change("load", "none")).toMatchObject([400, { error: { type: "invalid_request_error" } }]);
    expect(await (await chat()).json()).toMatchObject({ choices: [{ message: { content: "user: Hello" } }] });
    expect(await change("unload")).toEqual([200, { status: "success", model: "echo" }]);
    expect(await change("unload")).toMatchObject([400, { error: { code: "not_loaded" } }]);
    expect([404, 503]).toContain((await chat()).status);
  });
});
