import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import { identityConfig } from "../../../../test/support/repository-on-disk.js";
import { ALL, serve } from "./agent-server.js";

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
