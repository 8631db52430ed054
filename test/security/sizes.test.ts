import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { deflateSync, gzipSync } from "node:zlib";
import { status } from "@grpc/grpc-js";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import type { BackendFactory, ParameterTable } from "@tritonjs/core/backend";
import { lineLogger } from "@tritonjs/core/internal";
import { rollouts } from "@tritonjs/operations/rollout";
import { encodeMessage, inference } from "@tritonjs/protocol/grpc";
import { serviceOf } from "@tritonjs/server";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { DeclaredParameters } from "../../packages/core/src/backends/declared-parameters.js";
import { framed, rawCall, rawSession } from "../../packages/grpc/test/support/raw-call.js";
import { BUILT_IN, PACKAGED } from "../../packages/repository/src/backends/find-backend.js";
import { repositoryRoot } from "../support/repository.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";
import { useServer } from "./support/open-server.js";

const server = useServer();

const MIB = 2 ** 20;

/** 48 MiB of zeros in about 48 KiB: within the limit on sizes, a thousandfold in memory. */
const zeros = Buffer.alloc(48 * MIB);

describe("a decompression bomb", () => {
  it.each([
    ["gzip", gzipSync(zeros)],
    ["deflate", deflateSync(zeros)],
  ])("in %s over HTTP is refused for its ratio, and its memory is given back", async (encoding, body) => {
    const { requestMemory } = serviceOf(server.triton);
    const before = requestMemory.refusals.RATIO;
    const answer = await fetch(`http://localhost:${server.httpPort}/v2/models/echo/infer`, {
      method: "POST",
      headers: { "content-encoding": encoding },
      body,
    });
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringMatching(/ratio|100 times/)]);
    expect(requestMemory.refusals.RATIO).toBe(before + 1);
    await expect.poll(() => requestMemory.usedBytes).toBe(0);
    await server.serves();
  });

  it("in gzip over gRPC is refused for its ratio", async () => {
    const session = rawSession(`localhost:${server.grpcPort}`);
    const answer = await rawCall(session, framed(gzipSync(zeros), 1), { "grpc-encoding": "gzip" });
    expect(answer.grpcStatus).toBe(status.RESOURCE_EXHAUSTED);
    await expect.poll(() => serviceOf(server.triton).requestMemory.usedBytes).toBe(0);
    await server.serves();
  });

  it("of gzip in gzip is unpacked once", async () => {
    const body = gzipSync(gzipSync(zeros));
    const answer = await fetch(`http://localhost:${server.httpPort}/v2/models/echo/infer`, {
      method: "POST",
      headers: { "content-encoding": "gzip" },
      body,
    });
    expect(answer.status).toBe(500);
    expect(await answer.text()).toContain("failed to parse the request JSON buffer");
    await server.serves();
  });
});

const huge = [
  ["2^32 x 2^32", [2 ** 32, 2 ** 32]],
  ["2^32 x 2^32 x 0", [2 ** 32, 2 ** 32, 0]],
  ["2^53", [2 ** 53]],
  ["2^40", [2 ** 40]],
] as const;

describe("sizes of tensors", () => {
  it("more outputs than the limit are refused before any is made", async () => {
    const client = new InferenceServerClient(`localhost:${server.grpcPort}`);
    onTestFinished(() => client.close());
    const outputs = Array.from({ length: 5000 }, (_, index) => ({ name: `y${index}` }));
    const inputs = { x: { datatype: "BYTES", shape: [1], data: ["a"] } } as const;
    await expect(client.infer("echo", { inputs, outputs })).rejects.toThrow("4096");
    const answer = await fetch(`http://localhost:${server.httpPort}/v2/models/echo/infer`, {
      method: "POST",
      body: JSON.stringify({ inputs: [{ name: "x", datatype: "BYTES", shape: [1], data: ["a"] }], outputs }),
    });
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining("4096")]);
    await server.serves();
  });
});

describe("a shape with a huge or overflowing product", () => {
  it.each(huge)("of %s elements is refused over HTTP", async (_text, shape) => {
    for (const data of ['"data":["a"]', '"parameters":{"binary_data_size":0}']) {
      const body = `{"inputs":[{"name":"x","datatype":"BYTES","shape":[${shape}],${data}}]}`;
      const answer = await fetch(`http://localhost:${server.httpPort}/v2/models/echo/infer`, {
        method: "POST",
        headers: { "inference-header-content-length": `${body.length}` },
        body,
      });
      expect(answer.status).toBe(400);
      await answer.text();
    }
    await server.serves();
  });

  it.each(huge)("of %s elements is refused over gRPC", async (_text, shape) => {
    const session = rawSession(`localhost:${server.grpcPort}`);
    for (const rawInputContents of [[Buffer.alloc(0)], [Buffer.of(1, 0, 0, 0, 97)]]) {
      const inputs = [{ name: "x", datatype: "BYTES", shape: [...shape] }];
      const message = encodeMessage(inference.ModelInferRequest, {
        modelName: "echo",
        inputs,
        rawInputContents,
      });
      expect((await rawCall(session, framed(message))).grpcStatus).toBe(3);
    }
    await server.serves();
  });
});

describe("a string that claims 4 GiB", () => {
  const claim = Buffer.of(0xff, 0xff, 0xff, 0xff, 97);

  it("is refused over HTTP, without memory for it", async () => {
    const header = `{"inputs":[{"name":"x","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":${claim.length}}}]}`;
    const answer = await fetch(`http://localhost:${server.httpPort}/v2/models/echo/infer`, {
      method: "POST",
      headers: { "inference-header-content-length": `${header.length}` },
      body: Buffer.concat([Buffer.from(header), claim]),
    });
    expect([answer.status, await answer.text()]).toEqual([
      400,
      expect.stringContaining("incomplete string data"),
    ]);
    await server.serves();
  });

  it("is refused over gRPC", async () => {
    const session = rawSession(`localhost:${server.grpcPort}`);
    const inputs = [{ name: "x", datatype: "BYTES", shape: [1] }];
    const rawInputContents = [claim];
    const message = encodeMessage(inference.ModelInferRequest, {
      modelName: "echo",
      inputs,
      rawInputContents,
    });
    expect((await rawCall(session, framed(message))).grpcStatus).toBe(3);
    await server.serves();
  });
});

/*
 * Backends say what each of their parameters names, and can read no other parameter. A load request over the network is
 * refused by these tables.
 */

const packaged = await Promise.all(
  Object.entries(PACKAGED).map(async ([name, { entry }]) => {
    const { repositoryBackends } = (await import(entry)) as {
      readonly repositoryBackends: Readonly<Record<string, BackendFactory>>;
    };
    return [name, repositoryBackends[name]!] as const;
  }),
);

const backends = [...Object.entries(BUILT_IN), ...packaged];

/** Words in names of parameters that are paths, addresses, or contents that usually are in files. */
const PATH_WORDS = new Set(
  `path paths filepath file files filename dir directory folder lib library libraries uri url urls address host socket
  location cache env environment executable program script module vocabulary vocab ngram template prefix dump save
  output config`.split(/\s+/),
);

/** Parameters with such a word whose texts are numbers, switches and words. */
const NO_PATHS = [
  ...["prefix_cache", "prefix_cache_bytes", "prefix_directory_bytes", "kv_cache_bytes"],
  ...["ngram_weight", "pair_template", "output_class", "CUSTOM_OUTPUT_DELAY_NS"],
  ...["session.use_env_allocators", "storageBufferCacheMode", "uniformBufferCacheMode"],
  ...["queryResolveBufferCacheMode", "defaultBufferCacheMode"],
];

const hasPathWord = (parameter: string) =>
  parameter.split(/[_.]|(?<=[a-z])(?=[A-Z])/).some((word) => PATH_WORDS.has(word.toLowerCase()));

const tablesOf = ({ parameters = {}, acceleratorParameters = {} }: BackendFactory): ParameterTable[] => [
  parameters,
  acceleratorParameters,
];

describe("the parameters that a backend declares", () => {
  it.each(backends)("are a table: %s", (_name, factory) => {
    expect(factory.parameters).toEqual(expect.any(Object));
  });

  it("that are paths by their names are paths in the table", () => {
    const values = backends.flatMap(([name, factory]) =>
      tablesOf(factory)
        .flatMap((table) => Object.entries(table))
        .filter(([parameter, use]) => use === "value" && hasPathWord(parameter))
        .filter(([parameter]) => !NO_PATHS.includes(parameter))
        .map(([parameter]) => `${name}: ${parameter}`),
    );
    expect(values).toEqual([]);
  });

  it("are the only ones that it can read", () => {
    const parameters = new DeclaredParameters<string>({ read: ["vocabulary"], write: ["session.*"] });
    const config = {
      parameters: { vocabulary: { stringValue: "a" }, other: { stringValue: "/etc/passwd" } },
    };
    expect(parameters.text({ config }, "vocabulary")).toBe("a");
    const undeclared = /^parameter '(other|mlas\.\*)': expected one that the backend declares$/;
    expect(() => parameters.text({ config }, "other")).toThrow(undeclared);
    expect(() => parameters.texts({ config }, "mlas.*")).toThrow(undeclared);
  });
});

describe("a path of a load request", async () => {
  const repository = await RepositoryOnDisk.create({ "m/1/": "" });
  afterAll(() => repository[Symbol.asyncDispose]());
  const server = useServer(() => ({
    triton: {
      modelRepository: repository.path,
      modelControlMode: "explicit",
      extensions: [rollouts()],
      logger: lineLogger(
        () => {},
        () => "default",
      ),
    },
  }));
  const rows = backends.flatMap(([backend, factory]) =>
    tablesOf(factory).flatMap((table, i) =>
      Object.entries(table)
        .filter(([, use]) => use !== "value")
        .map(([row]) => ({ backend, parameter: row.replace("*", "some_option"), isAccelerator: i === 1 })),
    ),
  );

  const ofExtension = { backend: "identity", parameter: "rollout_directory", isAccelerator: false };

  it.each([...rows, ofExtension])(
    "is refused before the backend opens: $parameter of $backend",
    async (row) => {
      const { backend, parameter, isAccelerator } = row;
      const text = "/etc/passwd";
      const accelerator = { name: "openvino", parameters: { [parameter]: text } };
      const config = isAccelerator
        ? { backend, optimization: { execution_accelerators: { cpu_execution_accelerator: [accelerator] } } }
        : { backend, parameters: { [parameter]: { string_value: text } } };
      for (const client of server.clients) {
        const refusal = await client.loadModel("m", { config }).catch((error: Error) => error);
        expect(refusal).toMatchObject({ code: "INVALID_ARG" });
        expect(String(refusal)).toContain(`parameter '${parameter}' of `);
        expect(String(refusal)).toContain("in a configuration that came over the network, got '/etc/passwd'");
      }
    },
  );
});

describe("the sources", () => {
  /** Files that use the texts of parameters without the table of a backend, with the reasons. */
  const EXEMPT: Readonly<Record<string, string>> = {
    "core/src/backends/declared-parameters.ts": "is the reader",
    "core/src/config/model-options.ts": "reads the parameters of all models, which SHARED_PARAMETERS has",
    "core/src/instance/js-model.ts": "is an example in a comment",
    "operations/src/on-demand/on-demand-settings.ts":
      "reads the parameters of all models, which its extension declares",
    "operations/src/rollout/rollout-options.ts":
      "reads the parameters of all models, which its extension declares",
    "repository/src/backends/find-backend.ts": "adds the environment of a backend directory",
    "repository/src/config/substitutes.ts": "writes the parameters of the operator's rules",
    "repository/src/directories/given-paths.ts": "checks all of them",
    "repository/src/loading/poll-model.ts": "shows what a substitute stands for",
    "repository/src/model-repository.ts": "shows what a substitute stands for",
    "backends/src/classes/index.ts": "hands all parameters to the class of a model",
    "backends/src/classes/model-settings.ts": "writes parameters of settings that are on disk",
    "backends/src/onnxruntime/native/native-values.ts": "has a function of that name",
    "backends/src/python/complete-with-python.ts": "writes parameters",
    "backends/src/python/index.ts": "writes parameters of the program",
    "backends/python/tritonjs_class/model.py": "hands all parameters to the class of a model",
    "backends/python/tritonjs_torch/settings.py": "reads switches and numbers",
  };

  it.each(["core/src", "repository/src", "operations/src", "backends/src", "backends/python", "llm/src"])(
    "read parameters of models by a table only: %s",
    async (folder) => {
      const root = join(repositoryRoot, "packages", folder);
      const names = (await readdir(root, { recursive: true })).filter((name) => /\.(ts|py)$/.test(name));
      const readers: string[] = [];
      for (const name of names) {
        const source = await readFile(join(root, name), "utf8");
        if (/stringValue|string_value/.test(source)) readers.push(join(folder, name));
      }
      const exempt = Object.keys(EXEMPT).filter((name) => name.startsWith(`${folder}/`));
      expect(readers.sort()).toEqual(exempt.sort());
    },
  );
});
