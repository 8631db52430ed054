import { readFileSync } from "node:fs";
import { join } from "node:path";
import { sample, Triton } from "@tritonjs/core";
import { http, openApiDocument } from "@tritonjs/http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { curlLines } from "../support/curl-line.js";
import { repositoryRoot } from "../support/repository.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const document = readFileSync(join(repositoryRoot, "docs/http.md"), "utf8");
const lines = curlLines(document);

describe("the curl lines in docs/http.md", () => {
  const triton = new Triton({ security: { restrictedEndpoints: [] } });
  let base = "";

  beforeAll(async () => {
    triton.bind({
      modelName: "double",
      inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
      inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
    });
    triton.bind({
      modelName: "shout",
      inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
      outputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
      inferFunc: sample(({ text }) => {
        const [value] = text.data;
        const said = typeof value === "string" ? value : decoder.decode(value);
        return { text: [encoder.encode(said.toUpperCase())] };
      }),
    });
    triton.bind({
      modelName: "countdown",
      inputs: [{ name: "from", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "left", dtype: "INT32", shape: [1] }],
      inferFunc: sample(async function* ({ from }) {
        for (let left = from.get(0); left > 0; left--) yield { left: [left] };
      }),
    });
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
    base = addresses.http!.url;
  });
  afterAll(() => triton.close());

  it.each(lines)("$line", async ({ path, init, status, text }) => {
    const answer = await fetch(base + path, init);
    const body = await answer.text();
    expect([answer.status, body]).toEqual([status, expect.stringContaining(text)]);
  });

  it("cover every route", () => {
    const { paths } = openApiDocument() as unknown as { paths: Record<string, Record<string, unknown>> };
    const asked = lines.map(({ path, init }) => `${init.method!.toLowerCase()} ${path}`);
    const missing = Object.entries(paths)
      .filter(([path]) => !/\{version\}|\{repository\}|region\}\/(?!register)|memory\/register/.test(path))
      .flatMap(([path, methods]) =>
        Object.keys(methods)
          .filter((method) => method !== "parameters")
          .map((method) => `${method} ${path}`),
      )
      .filter((operation) => {
        const pattern = new RegExp(`^${operation.replace(/\{\w+\}/g, "[^/]+")}$`);
        return !asked.some((line) => pattern.test(line));
      });
    expect(missing).toEqual([]);
  });
});
