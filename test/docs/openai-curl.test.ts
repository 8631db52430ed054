import { readFileSync } from "node:fs";
import { join } from "node:path";
import { batch, sample, Triton } from "@tritonjs/core";
import { openai } from "@tritonjs/llm/openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { curlLines } from "../support/curl-line.js";
import { repositoryRoot } from "../support/repository.js";

const lines = curlLines(readFileSync(join(repositoryRoot, "docs/openai.md"), "utf8"));

describe("the curl lines in docs/openai.md", () => {
  const triton = new Triton({ security: { restrictedEndpoints: [] } });
  let base = "";

  beforeAll(async () => {
    triton.bind({
      modelName: "parrot",
      inputs: [
        { name: "text_input", dtype: "BYTES", shape: [1], optional: true },
        { name: "messages", dtype: "BYTES", shape: [1], optional: true },
      ],
      outputs: [{ name: "text_output", dtype: "BYTES", shape: [1] }],
      inferFunc: sample(async function* ({ text_input, messages }) {
        const said = text_input?.text(0) ?? messages!.json<{ content: string }[]>(0).at(-1)!.content;
        for (const word of said.split(" ")) yield { text_output: [`${word} `] };
      }),
    });
    triton.bind({
      modelName: "lengths",
      inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
      outputs: [{ name: "embedding", dtype: "FP32", shape: [2] }],
      config: { maxBatchSize: 8 },
      inferFunc: batch(({ text }) => ({ embedding: text.strings().map((one) => [one.length, 1]) })),
    });
    const { addresses } = await triton.serve({ frontends: [openai({ port: 0 })] });
    base = addresses.openai!.url;
  });
  afterAll(() => triton.close());

  it.each(lines)("$line", async ({ path, init, status, text }) => {
    const answer = await fetch(base + path, init);
    const body = await answer.text();
    expect([answer.status, body]).toEqual([status, expect.stringContaining(text)]);
  });

  it("cover every endpoint", () => {
    const paths = new Set(lines.map(({ path, init }) => `${init.method} ${path}`));
    const endpoints = [
      "POST /v1/chat/completions",
      "POST /v1/completions",
      "POST /v1/responses",
      "POST /v1/embeddings",
      "GET /v1/models",
      "GET /v1/models/parrot",
      "POST /v1/models/parrot/load",
      "POST /v1/models/parrot/unload",
      "GET /health/ready",
      "GET /metrics",
    ];
    expect(endpoints.filter((endpoint) => !paths.has(endpoint))).toEqual([]);
  });
});
