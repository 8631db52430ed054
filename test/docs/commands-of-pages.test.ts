import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { batch, sample, Triton } from "@tritonjs/core";
import { http, openApiDocument } from "@tritonjs/http";
import { openai } from "@tritonjs/llm/openai";
import { rollouts } from "@tritonjs/operations/rollout";
import { analyze } from "@tritonjs/perf";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { curlLines } from "../support/curl-line.js";
import { repositoryRoot } from "../support/repository.js";
import { PROGRAMS, page } from "./getting-started-page.js";
import { blocks, documents } from "./markdown.js";
import { testSnippets } from "./snippet-runs.js";

testSnippets("the code in the README", (path) => path.startsWith("README.md"));

/* The programs of the page run with the packed packages: `test/package/tutorial.long.test.ts`. */
describe("the page that new users start from", () => {
  it("has its programs run by the tutorial's tests, except for the module that they share", () => {
    const { all, scripts, servers, clients } = PROGRAMS;
    expect({ scripts, servers, clients }).toEqual({
      scripts: ["first", "batches", "flowers", "checks", "stream", "ensemble", "watch"].map(toFile),
      servers: ["fastify", "express", "hono", "serve"].map(toFile),
      clients: ["client.mjs"],
    });
    const run = new Set([...scripts, ...servers, ...clients]);
    expect([...all.keys()].filter((name) => !run.has(name))).toEqual(["models.mjs"]);
  });

  it("quotes the examples of Nest and Next.js as they are", () => {
    const quotes = [...page.matchAll(/^```typescript\n\/\/ (\S+)\n(.*?)^```$/gms)];
    expect(quotes.length).toBeGreaterThan(4);
    for (const [, file, code] of quotes) {
      expect(readFileSync(join(repositoryRoot, file!), "utf8")).toContain(code);
    }
  });
});

function toFile(name: string): string {
  return `${name}.mjs`;
}

const encoder = new TextEncoder();

const decoder = new TextDecoder();

const document = readFileSync(join(repositoryRoot, "docs/http.md"), "utf8");

const lines = curlLines(document);

describe("the curl lines in docs/http.md", () => {
  const triton = new Triton({ security: { restrictedEndpoints: [] }, extensions: [rollouts()] });
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

describe("the curl lines in docs/openai.md", () => {
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
});

describe("the lines of performance tools", () => {
  it("the module in the page about tritonjs analyze is tuned", async () => {
    const page = documents().find(({ path }) => path === "docs/performance-tools.md")!;
    const modules = blocks(page, "js");
    expect(modules).toHaveLength(1);
    // The folder is inside the repository, so that the package is found as in a project that installed it.
    const folder = join(repositoryRoot, "node_modules", ".cache", `doc-modules-${process.pid}`);
    mkdirSync(folder, { recursive: true });
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const [program, results] = [join(folder, "program.mjs"), join(folder, "results")];
    writeFileSync(program, modules[0]!.code);

    const line = /^tritonjs analyze (.*--module program\.js .*)$/m.exec(page.text)![1]!;
    const args = line.replace("program.js", program).split(" ");
    const quick = [
      "--search",
      "brute",
      "--instances",
      "1",
      "--queue-delays",
      "0",
      "--concurrency-range",
      "8",
    ];
    const measurement = ["-p", "40", "-r", "1", "--warmup-request-count", "1", "-e", results];
    let errors = "";
    const code = await analyze([...args, ...quick, ...measurement, "--num-configs-per-model", "9"], {
      write: () => {},
      writeError: (text) => {
        errors += text;
      },
      stopRequested: () => new Promise(() => {}),
    });
    expect({ code, errors: code === 0 ? "" : errors }).toEqual({ code: 0, errors: "" });
    const analysis = JSON.parse(readFileSync(join(results, "analysis.json"), "utf8"));
    const sizes = analysis.results.map((one: { parameters: { double: { maxBatchSize?: number } } }) =>
      String(one.parameters.double.maxBatchSize),
    );
    expect(sizes.toSorted()).toEqual(["1", "32", "8", "undefined"]);
  });
});
