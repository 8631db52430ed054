import { describe, expect, it } from "vitest";
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
