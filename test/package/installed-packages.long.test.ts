import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { irisModel } from "../support/iris.js";
import { repositoryRoot } from "../support/repository.js";
import { PACKAGES, PackedPackages, type Project } from "./packed-packages.js";
import { commonJsConsumer, consumer, measuringProgram, servingProgram, workersProgram } from "./programs.js";
import { CORE_INSTALLED } from "./size-budgets.js";

const INSTALL_TIMEOUT_MS = 600_000;

const packed = new PackedPackages();
let all: Project;
let coreAlone: Project;
let coreAndBackends: Project;
let clientAlone: Project;

beforeAll(async () => {
  await packed.pack();
  all = await packed.install("all", PACKAGES);
  coreAlone = await packed.install("core-alone", ["core", "protocol"]);
  // The packages of the tests of bundlers, which share the installation.
  coreAndBackends = await packed.install("core-and-backends", [
    "protocol",
    "core",
    "server",
    "backends",
    "http",
  ]);
  clientAlone = await packed.install("client-alone", ["client", "protocol"]);
}, INSTALL_TIMEOUT_MS);
afterAll(() => packed.remove(), INSTALL_TIMEOUT_MS);

/** Subpaths that are part of a framework, which the project does not have. Their own tests have it. */
const FRAMEWORKS = ["./ai-sdk", "./langchain", "./mcp"];

/** Names by which a package can be imported. */
function entries(name: (typeof PACKAGES)[number]): string[] {
  return (
    Object.keys(all.manifest(name).exports)
      // The subpath `types` exports no values, and files are not modules.
      .filter((key) => !/\*|\.json$|\.wasm$/.test(key) && key !== "./types" && !FRAMEWORKS.includes(key))
      .map((key) => `@tritonjs/${name}${key.slice(1)}`)
  );
}

/** Loads all entries of all packages in one program. Returns for each whether it exports names, or its error. */
async function loadedBy(file: string, load: string): Promise<Record<string, unknown>> {
  const text = `
    const loaded = {};
    const load = async (entry) => {
      try {
        loaded[entry] = Object.keys(${load}).length > 0;
      } catch (error) {
        loaded[entry] = error.code ?? String(error);
      }
    };
    (async () => {
      for (const entry of ${JSON.stringify(PACKAGES.flatMap(entries))}) await load(entry);
      console.log(JSON.stringify(loaded));
    })();`;
  const { code, stdout, stderr } = await all.run(file, text);
  // Node warns of a module that is required.
  expect({ code, stderr: file.endsWith(".cjs") ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

describe("the packed packages", () => {
  it("can be imported by each of their names", async () => {
    const loaded = await loadedBy("import.mjs", "await import(entry)");
    expect(Object.keys(loaded).length).toBeGreaterThan(PACKAGES.length);
    expect(Object.entries(loaded).filter(([, result]) => result !== true)).toEqual([]);
  });

  it("can be required, or report that they are ES modules on a Node that cannot", async () => {
    const loaded = await loadedBy("require.cjs", "require(entry)");
    const [, first] = Object.entries(loaded)[0]!;
    expect([true, "ERR_REQUIRE_ESM"]).toContain(first);
    expect(Object.entries(loaded).filter(([, result]) => result !== first)).toEqual([]);
  });
});

describe("a project with all packages", () => {
  it.each([
    ["NodeNext", "NodeNext", "consumer.ts", consumer],
    ["NodeNext", "NodeNext", "consumer.cts", commonJsConsumer],
    ["Bundler", "ESNext", "consumer.ts", consumer],
  ])(
    "type-checks with moduleResolution %s and module %s: %s",
    async (moduleResolution, module, file, text) => {
      all.write(file, text);
      const { stdout } = await all.compile({
        compilerOptions: {
          target: "ES2022",
          lib: ["ES2023", "ESNext.Disposable"],
          module,
          moduleResolution,
          strict: true,
          noEmit: true,
          typeRoots: [join(repositoryRoot, "node_modules", "@types")],
          types: ["node"],
        },
        files: [file],
      });
      // Errors in declarations of other packages are not ours.
      const errors = stdout.split("\n").filter((line) => /^consumer\.c?ts|@tritonjs/.test(line));
      expect(errors).toEqual([]);
    },
  );

  it("has one error class under all import names, and workers that find their programs", async () => {
    const { code, stdout, stderr } = await all.run("workers.mjs", workersProgram);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.trimEnd().split("\n")).toEqual([
      "one class: true",
      "inline: INTERNAL 7",
      "worker: INTERNAL 7",
      "process: INTERNAL 7",
    ]);
  });

  it("binds, infers, serves and closes", async () => {
    const { code, stdout, stderr } = await all.run("serve.mjs", servingProgram);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.trimEnd().split("\n")).toEqual([
      "in process: 6",
      "frontends: grpc http metrics",
      "over HTTP: 8",
      "closed",
    ]);
  });
});

describe("the command of a project with all packages", () => {
  it("exists and prints its version", async () => {
    const { code, stdout } = await all.command("tritonjs", "--version");
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${all.manifest("cli").version}\n` });
  });

  it("writes a sample repository that passes the check", async () => {
    expect((await all.command("tritonjs", "init", "models")).code).toBe(0);
    const { code, stdout } = await all.command("tritonjs", "config", "check", "models");
    expect({ code, stdout }).toEqual({ code: 0, stdout: "1 model: 0 errors, 0 warnings\n" });
  });

  it("measures a server", async () => {
    const { code, stdout, stderr } = await all.run("measure.mjs", measuringProgram);
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toBe("http: Request count: 40\ngrpc: Request count: 40\n");
  });

  it("finds the best configuration of a model", async () => {
    const version = join(all.folder, "tuned", "same", "1");
    mkdirSync(version, { recursive: true });
    const tensor = "data_type: TYPE_FP32 dims: 1";
    writeFileSync(
      join(version, "..", "config.pbtxt"),
      `backend: "javascript" max_batch_size: 4 input { name: "x" ${tensor} } output { name: "y" ${tensor} }`,
    );
    writeFileSync(
      join(version, "model.js"),
      "export default (requests) => requests.map(({ inputs }) => ({ y: inputs.x }));\n",
    );
    const { code, stdout, stderr } = await all.command(
      "tritonjs",
      ...["analyze", "--model-repository", "tuned", "-m", "same", "--search", "model", "--verify", "1"],
      ...["--instances", "1", "--max-batch-sizes", "1,4", "--isolation", "default", "--queue-delays", "0"],
      ...["--concurrency-range", "8", "-p", "100", "-r", "1"],
    );
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^variant +infer\/s +p99 ms/m);
    expect(readdirSync(join(all.folder, "analyze-results"))).toContain("report.html");
  });
});

describe("a project with @tritonjs/client", () => {
  it("has no server", () => {
    const names = clientAlone.installedPackages().map((folder) => folder.replace("node_modules/", ""));
    expect(names).toContain("@tritonjs/client");
    expect(
      names.filter((name) => /^(fastify|prom-client|@tritonjs\/(core|http|grpc|cli))$/.test(name)),
    ).toEqual([]);
  });

  it("has one class of errors, whichever name it is imported by", async () => {
    const { code, stdout, stderr } = await clientAlone.run(
      "names.mjs",
      `import * as both from "@tritonjs/client";
      import * as http from "@tritonjs/client/http";
      import * as grpc from "@tritonjs/client/grpc";
      for (const name of ["TritonError", "isTimeout"]) {
        console.log(name, both[name] === http[name] && both[name] === grpc[name]);
      }`,
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toBe("TritonError true\nisTimeout true\n");
  });
});

describe("a project with @tritonjs/core alone", () => {
  it("is small", () => {
    expect(coreAlone.installed().size / 1e6).toBeLessThan(CORE_INSTALLED.megabytes);
    expect(coreAlone.installedPackages().length).toBeLessThanOrEqual(CORE_INSTALLED.packages);
  });

  it("answers in process, and serve() names the packages to install", async () => {
    const { code, stdout, stderr } = await coreAlone.run("serve.mjs", servingProgram);
    expect(code).not.toBe(0);
    expect(stdout).toBe("in process: 6\n");
    expect(stderr).toContain("install one of @tritonjs/http, @tritonjs/grpc");
  });
});

it("a project with @tritonjs/backends is told to install onnxruntime-node when it binds an ONNX model", async () => {
  expect(existsSync(join(coreAndBackends.folder, "node_modules", "onnxruntime-node"))).toBe(false);
  const { code, stdout } = await coreAndBackends.run(
    "onnx.mjs",
    `import { Triton } from "@tritonjs/core";
    import { onnxruntime } from "@tritonjs/backends/onnxruntime";
    const triton = new Triton();
    const model = ${JSON.stringify(fileURLToPath(irisModel))};
    const iris = triton.bind({ modelName: "iris", inferFunc: onnxruntime({ model }) });
    await iris.ready().catch(({ code, message }) => console.log(code, message));
    await triton.close();`,
  );
  expect(code).toBe(0);
  expect(stdout).toMatch(/cannot load onnxruntime-node .*: install it next to @tritonjs\/backends/s);
});
