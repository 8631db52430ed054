import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton, type TritonOptions } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import { hasPython, withoutPython } from "../../../../test/support/python.js";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const named = (agent: string, parameters: Readonly<Record<string, string>> = {}) => {
  const entries = Object.entries(parameters).map(
    ([key, value]) => `parameters { key: "${key}" value: "${value}" }`,
  );
  return identityConfig(`model_repository_agents { agents [ { name: "${agent}" ${entries.join(" ")} } ] }`);
};

/** The cases that this machine can run. The test of printed lines says by its name that there is no Python. */
const runnable = <C extends readonly unknown[]>(cases: readonly C[]): readonly C[] =>
  cases.filter((one) => hasPython || !one.includes("agent.py"));

/** Serves the model `m`, which names the agent, beside the model `other` without an agent. */
async function serve(
  agents: Readonly<Record<string, string>>,
  agent: string,
  options: TritonOptions = {},
  more: Readonly<Record<string, string>> = {},
) {
  const journal = await mkdtemp(join(tmpdir(), "agents-"));
  const directory = await RepositoryOnDisk.create(agents);
  const models = await RepositoryOnDisk.create({
    "m/config.pbtxt": named(agent, { journal: join(journal, "actions") }),
    "m/1/": "",
    "other/config.pbtxt": identityConfig(),
    "other/1/": "",
    ...more,
  });
  const lines: string[] = [];
  const take = (line: string) => void lines.push(line);
  const triton = new Triton({
    modelRepository: models.path,
    modelControlMode: "explicit",
    loadModel: ["*"],
    exitOnError: false,
    logger: { error: take, warn: take, info: take, debug() {} },
    repositoryAgentDirectory: directory.path,
    ...options,
  });
  const loaded = triton.ready().catch(() => {});
  return {
    triton,
    lines,
    loaded,
    directory: directory.path,
    models,
    reason: async () =>
      (await triton.service.repositoryIndex(false)).find(({ name }) => name === "m")!.reason ?? "",
    actions: async () => (await readFile(join(journal, "actions"), "utf8")).trim().split("\n"),
    async [Symbol.asyncDispose]() {
      await triton.close();
      await directory[Symbol.asyncDispose]();
      await models[Symbol.asyncDispose]();
      await rm(journal, { recursive: true });
    },
  };
}

const ALL = [
  "LOAD m identity",
  "LOAD_COMPLETE m identity",
  "UNLOAD m identity",
  "UNLOAD_COMPLETE m identity",
];

const JS_FUNCTION = `
  import { appendFileSync } from "node:fs";
  export default (action, { modelName, parameters, config }) =>
    appendFileSync(parameters.journal, action + " " + modelName + " " + config.backend + "\\n");
`;
const JS_OBJECT = `
  const { appendFileSync } = require("node:fs");
  const write = (action) => ({ modelName, parameters, config }) =>
    appendFileSync(parameters.journal, action + " " + modelName + " " + config.backend + "\\n");
  module.exports = Object.fromEntries(
    ["LOAD", "LOAD_COMPLETE", "UNLOAD", "UNLOAD_COMPLETE"].map((action) => [action, write(action)]),
  );
`;
const PYTHON = `
def write(action, model):
    with open(model.parameters["journal"], "a") as journal:
        journal.write(action + " " + model.name + " " + model.config["backend"] + "\\n")

def LOAD(model): write("LOAD", model)
def LOAD_COMPLETE(model): write("LOAD_COMPLETE", model)
def UNLOAD(model): write("UNLOAD", model)
def UNLOAD_COMPLETE(model): write("UNLOAD_COMPLETE", model)
`;

describe("an agent of the directory handles the actions of its model", () => {
  it.each(
    runnable([
      ["a function of an ES module", "agent.mjs", JS_FUNCTION],
      ["functions of a CommonJS module", "agent.js", JS_OBJECT],
      ["functions of a Python program", "agent.py", PYTHON],
    ]),
  )("as %s", async (_, file, source) => {
    await using served = await serve({ [`scribe/${file}`]: source }, "scribe");
    await served.loaded;
    expect(await served.reason()).toBe("");
    await served.triton.unloadModel("m");
    await served.triton.close();
    expect(await served.actions()).toEqual(ALL);
  });
});

describe("an agent of the directory moves its model", () => {
  const INT32 = identityConfig("", "TYPE_INT32");
  const sources = {
    "agent.mjs": `
      import { mkdirSync, writeFileSync } from "node:fs";
      export async function LOAD({ replaceLocation }) {
        const place = await replaceLocation();
        writeFileSync(place + "/config.pbtxt", ${JSON.stringify(INT32)});
        mkdirSync(place + "/3");
      }`,
    "agent.py": `
import os
def LOAD(model):
    place = model.replace_location()
    with open(place + "/config.pbtxt", "w") as config:
        config.write(${JSON.stringify(INT32)})
    os.mkdir(place + "/3")`,
  };
  it.each(runnable(Object.entries(sources)))(
    "into a directory that it asks for: %s",
    async (file, source) => {
      await using served = await serve({ [`mover/${file}`]: source }, "mover");
      await served.loaded;
      expect(await served.reason()).toBe("");
      const { OUTPUT0 } = await served.triton.infer("m", { INPUT0: [[5]] });
      expect(OUTPUT0!.data).toEqual(Int32Array.of(5));
    },
  );

  it.each(
    runnable([
      ["agent.mjs", `export const LOAD = ({ location }) => location + "/../other";`],
      ["agent.py", `def LOAD(model): return model.location + "/../twin"`],
    ]),
  )("to a directory that it returns: %s", async (file, source) => {
    const twin = { "twin/config.pbtxt": INT32.replace("{", "{ "), "twin/1/": "" };
    const text = source.replace("../other", "../twin");
    await using served = await serve({ [`mover/${file}`]: text }, "mover", {}, twin);
    await served.loaded;
    expect(await served.reason()).toBe("");
    const { OUTPUT0 } = await served.triton.infer("m", { INPUT0: [[5]] });
    expect(OUTPUT0!.data).toEqual(Int32Array.of(5));
  });

  it("not to a path that is not a directory", async () => {
    await using served = await serve(
      { "mover/agent.mjs": `export const LOAD = () => "elsewhere";` },
      "mover",
    );
    await served.loaded;
    expect(await served.reason()).toContain(
      "repository agent 'mover' of model 'm': LOAD: expected the absolute path of a directory, or nothing, got 'elsewhere'",
    );
  });
});

describe("a fault of an agent fails its model alone", () => {
  it.each(
    runnable([
      ["agent.mjs", `export const LOAD = () => { throw new Error("no licence"); };`, "no licence"],
      ["agent.py", `def LOAD(model): raise PermissionError("no licence")`, "PermissionError: no licence"],
      [
        "agent.mjs",
        "export const hello = 1;",
        /expected a function as default export, or functions named LOAD, .* got hello/,
      ],
      ["agent.mjs", "export const LOAD = 1;", /got LOAD: number/],
      [
        "agent.mjs",
        "import 'nowhere';",
        /repository agent 'faulty': cannot import '.*agent\.mjs': Cannot find package 'nowhere'/,
      ],
      [
        "agent.py",
        "import nowhere",
        /cannot import '.*agent\.py': ModuleNotFoundError: No module named 'nowhere'/,
      ],
      ["agent.py", "hello = 1", /expected functions named LOAD, .* got none/],
      ["agent.py", "import os\ndef LOAD(model): os._exit(3)", /agent\.py'\): its process exited with code 3/],
      [
        "libtritonrepoagent_faulty.so",
        "\x7fELF",
        /searched: .*libtritonrepoagent_faulty\.so' is a shared library for tritonserver/,
      ],
      [
        "readme",
        "",
        /unable to find 'libtritonrepoagent_faulty\.so' for repo agent 'faulty', searched: .*: an agent is a file faulty\/agent\.js or/,
      ],
    ]),
  )("at load: %s %s", async (file, source, expected) => {
    await using served = await serve({ [`faulty/${file}`]: source }, "faulty");
    await served.loaded;
    if (typeof expected === "string") expect(await served.reason()).toContain(expected);
    else expect(await served.reason()).toMatch(expected);
    const { OUTPUT0 } = await served.triton.infer("other", { INPUT0: [[5]] });
    expect(OUTPUT0!.data).toEqual(Float32Array.of(5));
  });

  it.each(
    runnable([
      ["agent.mjs", `export const UNLOAD = () => { throw new Error("not now"); };`, "not now"],
      ["agent.py", `def UNLOAD(model): raise ValueError("not now")`, "ValueError: not now"],
    ]),
  )("is logged at unload: %s", async (file, source, expected) => {
    await using served = await serve({ [`faulty/${file}`]: source }, "faulty");
    await served.loaded;
    await served.triton.unloadModel("m");
    await served.triton.close();
    expect(served.lines).toContain(`repository agent 'faulty' failed at UNLOAD of 'm': ${expected}`);
  });

  it.each(
    runnable([
      ["agent.mjs", `export const LOAD = () => new Promise(() => {});`],
      ["agent.py", `import time\ndef LOAD(model):\n    print("waiting", flush=True)\n    time.sleep(1e6)`],
    ]),
  )("ends at the limit when it hangs: %s", async (file, source) => {
    const clock = new VirtualClock();
    await using served = await serve({ [`slow/${file}`]: source }, "slow", {
      clock,
      repositoryAgentTimeoutSecs: 20,
    });
    if (file === "agent.py") {
      await expect.poll(() => served.lines).toContain("repository agent 'slow': waiting");
    }
    const loaded = served.loaded.then(() => true);
    await expect
      .poll(async () => {
        await clock.advance(20_000);
        return Promise.race([loaded, Promise.resolve(false)]);
      })
      .toBe(true);
    expect(await served.reason()).toContain(
      "repository agent 'slow' of model 'm': LOAD: expected an answer within 20 s (repositoryAgentTimeoutSecs), got none",
    );
  });
});

it.skipIf(!hasPython)(`what an agent prints last is in the log after close()${withoutPython}`, async () => {
  const source = `def UNLOAD_COMPLETE(model): print("\\n".join("line %d" % i for i in range(5000)))`;
  await using served = await serve({ "talker/agent.py": source }, "talker");
  await served.loaded;
  await served.triton.close();
  expect(served.lines).toContain("repository agent 'talker': line 4999");
});
