import { createHash } from "node:crypto";
import { access, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import type { RepositoryAgent } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, it } from "vitest";
import { outcomeOf } from "../../../test/support/outcome.js";
import { identityConfig, RepositoryOnDisk } from "../../../test/support/repository-on-disk.js";
import { type ServedOptions, servedOptions } from "../../../test/support/served-options.js";
import { ALL, reasonAfter, serve } from "./agent-server.js";

const agents = (...names: readonly string[]) =>
  `model_repository_agents { agents [ ${names.map((name) => `{ name: "${name}" parameters { key: "by" value: "${name}!" } }`).join(", ")} ] }`;

/** An agent that records its actions and fails at `failAt`. */
function recorder(told: string[], failAt?: string): RepositoryAgent {
  return async (action, { modelName, parameters, config }) => {
    told.push(`${parameters.by} ${action} ${modelName} ${config.backend}`);
    if (action === failAt) throw new Error(`not at ${action}`);
  };
}

async function serveWith(files: Record<string, string>, options: ServedOptions) {
  const models = await RepositoryOnDisk.create(files);
  const lines: string[] = [];
  const take = (line: string) => void lines.push(line);
  const logger = { error: take, warn: take, info() {}, debug() {} };
  const triton = new Triton(
    servedOptions({
      modelRepository: models.path,
      modelControlMode: "explicit",
      loadModel: ["*"],
      exitOnError: false,
      logger,
      ...options,
    }),
  );
  await triton.ready().catch(() => {});
  /** Reason why the model is not ready; empty when it is. */
  const reason = async () => (await serviceOf(triton).repositoryIndex(false))[0]!.reason ?? "";
  return {
    triton,
    models,
    lines,
    reason,
    async [Symbol.asyncDispose]() {
      await triton.close();
      await models[Symbol.asyncDispose]();
    },
  };
}

const model = (more: string) => ({ "m/config.pbtxt": identityConfig(more), "m/1/": "" });

describe("repository agents are called", () => {
  it("when their model loads and unloads, in the order of the configuration", async () => {
    const told: string[] = [];
    const agent = recorder(told);
    await using served = await serveWith(model(agents("a", "b")), {
      repositoryAgents: { a: agent, b: agent },
    });
    expect(told.splice(0)).toEqual([
      "a! LOAD m identity",
      "b! LOAD m identity",
      "a! LOAD_COMPLETE m identity",
      "b! LOAD_COMPLETE m identity",
    ]);
    await served.triton.unloadModel("m");
    await served.triton.close();
    expect(told).toEqual([
      "a! UNLOAD m identity",
      "b! UNLOAD m identity",
      "a! UNLOAD_COMPLETE m identity",
      "b! UNLOAD_COMPLETE m identity",
    ]);
  });

  it("when the server closes", async () => {
    const told: string[] = [];
    await using served = await serveWith(model(agents("a")), { repositoryAgents: { a: recorder(told) } });
    told.splice(0);
    await served.triton.close();
    expect(told).toEqual(["a! UNLOAD m identity", "a! UNLOAD_COMPLETE m identity"]);
  });

  it("during a reload: the new version loads before the old one unloads", async () => {
    const told: string[] = [];
    await using served = await serveWith(model(agents("a")), { repositoryAgents: { a: recorder(told) } });
    await served.triton.loadModel("m");
    expect(told.splice(0)).toEqual(["a! LOAD m identity", "a! LOAD_COMPLETE m identity"]);
    await served.models.write({ "m/1/notes": "new" });
    await served.triton.loadModel("m");
    await served.triton.close();
    expect(told.slice(0, 2)).toEqual(["a! LOAD m identity", "a! UNLOAD m identity"]);
    expect(told.filter((line) => line.includes("UNLOAD_COMPLETE"))).toHaveLength(2);
    expect(told.filter((line) => line.includes(" LOAD_COMPLETE"))).toHaveLength(1);
  });

  it("when their model fails to load", async () => {
    const told: string[] = [];
    const broken = {
      "m/config.pbtxt": `backend: "onnxruntime" ${agents("a")}`,
      "m/1/model.onnx": "no model",
    };
    await using served = await serveWith(broken, { repositoryAgents: { a: recorder(told) } });
    expect(await served.reason()).toMatch(/cannot read the ONNX model/);
    expect(told).toEqual(["a! LOAD m onnxruntime", "a! LOAD_FAIL m onnxruntime"]);
  });
});

describe("a repository agent", () => {
  it("keeps its model from loading by throwing", async () => {
    const told: string[] = [];
    const repositoryAgents = { a: recorder(told), b: recorder(told, "LOAD") };
    await using served = await serveWith(model(agents("a", "b")), { repositoryAgents });
    expect(await served.reason()).toBe("Internal: not at LOAD");
    expect(served.lines).toContain("Poll failed for model directory 'm': not at LOAD");
    expect(told.slice(2)).toEqual(["a! LOAD_FAIL m identity", "b! LOAD_FAIL m identity"]);
  });

  it("is logged and changes nothing when it fails later", async () => {
    await using served = await serveWith(model(agents("a")), {
      repositoryAgents: { a: recorder([], "LOAD_COMPLETE") },
    });
    expect(await served.reason()).toBe("");
    expect(served.lines).toContain(
      "repository agent 'a' failed at LOAD_COMPLETE of 'm': not at LOAD_COMPLETE",
    );
  });

  it("is named in the error when it does not exist", async () => {
    await using served = await serveWith(model(agents("nobody")), {});
    expect(await served.reason()).toMatch(
      /unable to find 'libtritonrepoagent_nobody.so' for repo agent 'nobody'/,
    );
  });

  it("may place its model elsewhere while it is in service", async () => {
    let place = "";
    const unpack: RepositoryAgent = async (action, { replaceLocation }) => {
      if (action !== "LOAD") return;
      place = await replaceLocation();
      await writeFile(join(place, "config.pbtxt"), identityConfig("", "TYPE_INT32"));
      await mkdir(join(place, "3"));
    };
    await using served = await serveWith(model(agents("unpack")), { repositoryAgents: { unpack } });
    const { triton } = served;
    const { OUTPUT0 } = await triton.infer("m", { INPUT0: [[5]] });
    expect(OUTPUT0!.data).toEqual(Int32Array.of(5));
    expect(await serviceOf(triton).repositoryIndex(false)).toMatchObject([
      { name: "m", version: "3", state: "READY" },
    ]);
    expect(await readdir(place)).toEqual(["3", "config.pbtxt"]);
    await triton.close();
    await expect(access(place)).rejects.toThrow("ENOENT");
  });
});

describe("the checksum agent", () => {
  const text = "weights";
  const hash = (algorithm: string) => createHash(algorithm).update(text).digest("hex");
  const checked = (key: string, value: string) => ({
    "m/config.pbtxt": identityConfig(
      `model_repository_agents { agents [ { name: "checksum" parameters { key: "${key}" value: "${value}" } } ] }`,
    ),
    "m/1/weights": text,
  });

  it.each([
    ["MD5:1/weights", hash("md5")],
    ["sha256:1/weights", hash("sha256")],
  ])("accepts files that match: %s", async (key, value) => {
    await using served = await serveWith(checked(key, value), {});
    expect(await served.reason()).toBe("");
  });

  it.each([
    ["MD5:1/weights", "00", `Mismatched MD5 hash for file 1/weights, expect: 00, got: ${hash("md5")}`],
    [
      "SHA256:1/weights",
      "00",
      `Mismatched SHA256 hash for file 1/weights, expect: 00, got: ${hash("sha256")}`,
    ],
    ["MD5:1/nothing", "00", "failed to open text file for read 1/nothing: No such file or directory"],
    [
      "MD5:../../../etc/passwd",
      "00",
      "checksum of ../../../etc/passwd: expected a path inside the model's directory",
    ],
    ["CRC:1/weights", "00", "Unsupported checksum algorithm: CRC"],
    ["1/weights", "00", "failed to parse key: 1/weights"],
  ])("rejects files that do not match: %s", async (key, value, reason) => {
    await using served = await serveWith(checked(key, value), {});
    expect(await served.reason()).toContain(`: ${reason}`);
    expect(await outcomeOf(served.triton.infer("m", { INPUT0: [[1]] }))).toMatch(/m/);
  });
});

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

describe("an agent of the directory handles the actions of its model", () => {
  it.each([
    ["a function of an ES module", "agent.mjs", JS_FUNCTION],
    ["functions of a CommonJS module", "agent.js", JS_OBJECT],
  ])("as %s", async (_, file, source) => {
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
  it.each([
    [
      "into a directory that it asks for",
      `import { mkdirSync, writeFileSync } from "node:fs";
       export async function LOAD({ replaceLocation }) {
         const place = await replaceLocation();
         writeFileSync(place + "/config.pbtxt", ${JSON.stringify(INT32)});
         mkdirSync(place + "/3");
       }`,
    ],
    ["to a directory that it returns", `export const LOAD = ({ location }) => location + "/../twin";`],
  ])("%s", async (_, source) => {
    const twin = { "twin/config.pbtxt": INT32, "twin/1/": "" };
    await using served = await serve({ "mover/agent.mjs": source }, "mover", {}, twin);
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
  it.each([
    ["agent.mjs", `export const LOAD = () => { throw new Error("no licence"); };`, /no licence/],
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
      "libtritonrepoagent_faulty.so",
      "\x7fELF",
      /searched: .*libtritonrepoagent_faulty\.so' is a shared library for tritonserver/,
    ],
    [
      "readme",
      "",
      /unable to find 'libtritonrepoagent_faulty\.so' for repo agent 'faulty', searched: .*: an agent is a file faulty\/agent\.js or/,
    ],
  ])("at load: %s %s", async (file, source, expected) => {
    await using served = await serve({ [`faulty/${file}`]: source }, "faulty");
    await served.loaded;
    expect(await served.reason()).toMatch(expected);
    const { OUTPUT0 } = await served.triton.infer("other", { INPUT0: [[5]] });
    expect(OUTPUT0!.data).toEqual(Float32Array.of(5));
  });

  it("is logged at unload", async () => {
    const source = `export const UNLOAD = () => { throw new Error("not now"); };`;
    await using served = await serve({ "faulty/agent.mjs": source }, "faulty");
    await served.loaded;
    await served.triton.unloadModel("m");
    await served.triton.close();
    expect(served.lines).toContain("repository agent 'faulty' failed at UNLOAD of 'm': not now");
  });

  it("ends at the limit when it hangs", async () => {
    const clock = new VirtualClock();
    const source = `export const LOAD = () => new Promise(() => {});`;
    await using served = await serve({ "slow/agent.mjs": source }, "slow", {
      clock,
      repositoryAgentTimeoutSecs: 20,
    });
    expect(await reasonAfter(served, clock, 20)).toContain(
      "repository agent 'slow' of model 'm': LOAD: expected an answer within 20 s (repositoryAgentTimeoutSecs), got none",
    );
  });
});
