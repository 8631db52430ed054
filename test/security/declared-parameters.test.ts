import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { BackendFactory, ParameterTable } from "@tritonjs/core/backend";
import { lineLogger } from "@tritonjs/core/internal";
import { afterAll, describe, expect, it } from "vitest";
import { DeclaredParameters } from "../../packages/core/src/backends/declared-parameters.js";
import { BUILT_IN, PACKAGED } from "../../packages/core/src/backends/find-backend.js";
import { repositoryRoot } from "../support/repository.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";
import { useServer } from "./support/open-server.js";

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

  it.each(rows)("is refused before the backend opens: $parameter of $backend", async (row) => {
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
  });
});

describe("the sources", () => {
  /** Files that use the texts of parameters without the table of a backend, with the reasons. */
  const EXEMPT: Readonly<Record<string, string>> = {
    "core/src/backends/declared-parameters.ts": "is the reader",
    "core/src/backends/find-backend.ts": "adds the environment of a backend directory",
    "core/src/config/defaults.ts": "writes parameters",
    "core/src/config/model-config-schema.ts": "is Triton's message",
    "core/src/config/model-options.ts": "reads the parameters of all models, which SHARED_PARAMETERS has",
    "core/src/config/substitutes.ts": "writes the parameters of the operator's rules",
    "core/src/instance/js-model.ts": "is an example in a comment",
    "core/src/model/resident-models.ts": "reads the parameters of all models, which SHARED_PARAMETERS has",
    "core/src/opentelemetry/otlp-spans.ts": "writes a field of OTLP",
    "core/src/repository/given-paths.ts": "checks all of them",
    "core/src/repository/model-repository.ts": "shows what a substitute stands for",
    "core/src/repository/poll-model.ts": "shows what a substitute stands for",
    "core/src/rollout/rollout-options.ts": "reads the parameters of all models, which SHARED_PARAMETERS has",
    "backends/src/classes/index.ts": "hands all parameters to the class of a model",
    "backends/src/classes/model-settings.ts": "writes parameters of settings that are on disk",
    "backends/src/onnxruntime/native-values.ts": "has a function of that name",
    "backends/src/python/complete-with-python.ts": "writes parameters",
    "backends/src/python/index.ts": "writes parameters of the program",
    "backends/python/tritonjs_class/model.py": "hands all parameters to the class of a model",
    "backends/python/tritonjs_torch/settings.py": "reads switches and numbers",
  };

  it.each(["core/src", "backends/src", "backends/python", "llm/src"])(
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
