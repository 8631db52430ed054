import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import vm from "node:vm";
import { gzipSync } from "node:zlib";
import { batch } from "@tritonjs/core";
import { rolldown } from "rolldown";
import { beforeAll, describe, expect, it } from "vitest";
import { HTTP_CLIENT_BUNDLE } from "../../../../test/package/size-budgets.js";
import { bindIdentity, serve } from "./support/serve.js";

/** The package that the client shares with servers. */
const sharedPackage = fileURLToPath(new URL("../../../protocol/src/index.ts", import.meta.url));

/** Files reachable from a file through runtime imports, and the packages that they import. */
function reachable(file: string, files = new Map<string, string>(), packages = new Set<string>()) {
  if (files.has(file)) return { files, packages };
  const code = readFileSync(file, "utf8").replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  files.set(file, code);
  const imports = code.matchAll(
    /\b(import|export)\s+(type\s)?[^;]*?\bfrom\s+"([^"]+)"|\bimport\(?\s*"([^"]+)"/g,
  );
  for (const [, , onlyTypes, from, bare] of imports) {
    const specifier = from ?? bare!;
    if (onlyTypes) continue;
    if (!specifier.startsWith(".")) packages.add(specifier);
    else reachable(join(dirname(file), specifier.replace(/\.js$/, ".ts")), files, packages);
  }
  return { files, packages };
}

const NODE_GLOBAL = /\b(Buffer|process|global|require|__dirname|__filename|setImmediate)\b\s*[.([]/;

describe.each([
  ["@tritonjs/client", "../../src/index.ts"],
  ["@tritonjs/client/http", "../../src/http/index.ts"],
])("the sources of %s", (_name, entry) => {
  const client = reachable(fileURLToPath(new URL(entry, import.meta.url)));
  const shared = reachable(sharedPackage);

  it("import no Node.js module", () => {
    expect([...client.packages]).toEqual(["@tritonjs/protocol"]);
    expect([...shared.packages]).toEqual(["ndarray"]);
  });

  it("use no Node.js global", () => {
    const files = [...client.files, ...shared.files];
    expect(files.length).toBeGreaterThan(10);
    expect(files.filter(([, code]) => NODE_GLOBAL.test(code)).map(([file]) => file)).toEqual([]);
  });
});

/** Globals that browsers and runtimes at the edge have. */
const WEB_GLOBALS = [
  "AbortController",
  "AbortSignal",
  "Blob",
  "CompressionStream",
  "DecompressionStream",
  "Headers",
  "ReadableStream",
  "Response",
  "TextDecoder",
  "TextEncoder",
  "URL",
  "URLSearchParams",
  "btoa",
  "clearTimeout",
  "fetch",
  "performance",
  "setTimeout",
] as const;

/** Evaluates code where there is nothing but the language and the web platform, and where generating code is forbidden. */
function webContext(): (code: string) => unknown {
  const globals = Object.fromEntries(WEB_GLOBALS.map((name) => [name, globalThis[name]]));
  const context = vm.createContext(globals, { codeGeneration: { strings: false, wasm: false } });
  return (code) => vm.runInContext(code, context);
}

describe("the bundle of @tritonjs/client/http for a browser", () => {
  let code: string;
  let imports: readonly string[];

  beforeAll(async () => {
    const build = await rolldown({
      input: fileURLToPath(import.meta.resolve("@tritonjs/client/http")),
      platform: "browser",
      onLog: (level, log) => {
        if (level === "warn") throw new Error(log.message);
      },
    });
    const { output } = await build.generate({ format: "iife", name: "client", minify: true });
    await build.close();
    [{ code, imports }] = output;
    expect(output).toHaveLength(1);
  });

  it("is complete and names no module of Node.js", () => {
    expect(imports).toEqual([]);
    expect(code).not.toMatch(/["'`]node:/);
  });

  it("keeps to its size budget, which the documentation states", () => {
    const { minifiedKilobytes, gzippedKilobytes } = HTTP_CLIENT_BUNDLE;
    expect(Buffer.byteLength(code) / 1e3).toBeLessThan(minifiedKilobytes);
    expect(gzipSync(code, { level: 9 }).length / 1e3).toBeLessThan(gzippedKilobytes);
    const page = readFileSync(new URL("../../../../docs/client.md", import.meta.url), "utf8");
    expect(page).toContain(`${minifiedKilobytes} kB minified, ${gzippedKilobytes} kB with gzip`);
  });

  it("infers, streams, compresses, times out and tells errors with web globals alone", async () => {
    const url = await serve((triton) => {
      bindIdentity(triton, "identity", "FP32", [-1]);
      triton.bind({
        modelName: "never",
        inputs: [{ name: "IN", dtype: "FP32", shape: [-1] }],
        outputs: [{ name: "OUT", dtype: "FP32", shape: [-1] }],
        inferFunc: batch(async (_, { signal }) => {
          await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
          return { OUT: [[0]] };
        }),
        config: { batching: false },
      });
    });
    const evaluate = webContext();
    evaluate(code);
    const answer = await evaluate(`(async () => {
      const { InferenceServerClient, ModelClient, isTimeout } = client;
      const server = new InferenceServerClient(${JSON.stringify(url)});
      const seen = { live: await server.isServerLive() };
      for (const options of [{}, { binary: false }, { requestCompression: "gzip", responseCompression: "deflate" }]) {
        const call = { inputs: { IN: Float32Array.of(1, 2, 3) }, id: "i", ...options };
        const result = await server.infer("identity", call);
        seen.ids = [...(seen.ids ?? []), result.id];
        seen.elements = [...(seen.elements ?? []), Array.from(result.elements("OUT", "FP32")).join()];
        seen.array = result.array("OUT").step(-1).get(0);
      }
      const model = new ModelClient(server, "identity");
      seen.sample = Array.from((await model.inferSample({ IN: [4, 5] })).OUT.data).join();
      seen.stream = [];
      for await (const { OUT } of server.generateStream("identity", { IN: [6, 7] })) seen.stream.push(OUT.join());
      seen.unknown = await server.infer("unknown", { inputs: {} }).catch(({ code }) => code);
      const late = { inputs: { IN: Float32Array.of(1) } };
      seen.late = await server.infer("never", { ...late, timeoutMs: 20 }).catch((error) => [error.code, isTimeout(error)].join());
      const abort = new AbortController();
      const given = server.infer("never", { ...late, signal: abort.signal }).catch(({ code }) => code);
      abort.abort();
      seen.given = await given;
      server.close();
      return JSON.stringify(seen);
    })()`);
    expect(JSON.parse(answer as string)).toEqual({
      live: true,
      ids: ["i", "i", "i"],
      elements: ["1,2,3", "1,2,3", "1,2,3"],
      array: 3,
      sample: "4,5",
      stream: ["6,7"],
      unknown: "NOT_FOUND",
      late: "UNAVAILABLE,true",
      given: "CANCELLED",
    });
  });
});
