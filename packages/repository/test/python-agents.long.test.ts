import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, it } from "vitest";
import { hasPython, withoutPython } from "../../../test/support/python.js";
import { identityConfig } from "../../../test/support/repository-on-disk.js";
import { ALL, reasonAfter, serve } from "./agent-server.js";

const SCRIBE = `
def write(action, model):
    with open(model.parameters["journal"], "a") as journal:
        journal.write(action + " " + model.name + " " + model.config["backend"] + "\\n")

def LOAD(model): write("LOAD", model)
def LOAD_COMPLETE(model): write("LOAD_COMPLETE", model)
def UNLOAD(model): write("UNLOAD", model)
def UNLOAD_COMPLETE(model): write("UNLOAD_COMPLETE", model)
`;

describe.skipIf(!hasPython)(`a repository agent in Python${withoutPython}`, () => {
  it("handles the actions of its model", async () => {
    await using served = await serve({ "scribe/agent.py": SCRIBE }, "scribe");
    await served.loaded;
    expect(await served.reason()).toBe("");
    await served.triton.unloadModel("m");
    await served.triton.close();
    expect(await served.actions()).toEqual(ALL);
  });

  const INT32 = identityConfig("", "TYPE_INT32");
  it.each([
    [
      "into a directory that it asks for",
      `
import os
def LOAD(model):
    place = model.replace_location()
    with open(place + "/config.pbtxt", "w") as config:
        config.write(${JSON.stringify(INT32)})
    os.mkdir(place + "/3")`,
    ],
    ["to a directory that it returns", `def LOAD(model): return model.location + "/../twin"`],
  ])("moves its model %s", async (_, source) => {
    const twin = { "twin/config.pbtxt": INT32, "twin/1/": "" };
    await using served = await serve({ "mover/agent.py": source }, "mover", {}, twin);
    await served.loaded;
    expect(await served.reason()).toBe("");
    const { OUTPUT0 } = await served.triton.infer("m", { INPUT0: [[5]] });
    expect(OUTPUT0!.data).toEqual(Int32Array.of(5));
  });

  it.each([
    [`def LOAD(model): raise PermissionError("no licence")`, /PermissionError: no licence/],
    ["import nowhere", /cannot import '.*agent\.py': ModuleNotFoundError: No module named 'nowhere'/],
    ["hello = 1", /expected functions named LOAD, .* got none/],
    ["import os\ndef LOAD(model): os._exit(3)", /agent\.py'\): its process exited with code 3/],
  ])("fails its model alone at load: %s", async (source, expected) => {
    await using served = await serve({ "faulty/agent.py": source }, "faulty");
    await served.loaded;
    expect(await served.reason()).toMatch(expected);
    const { OUTPUT0 } = await served.triton.infer("other", { INPUT0: [[5]] });
    expect(OUTPUT0!.data).toEqual(Float32Array.of(5));
  });

  it("is logged when it fails at unload, and what it prints last is in the log after close()", async () => {
    const source = `
def UNLOAD(model): raise ValueError("not now")
def UNLOAD_COMPLETE(model): print("\\n".join("line %d" % i for i in range(5000)))`;
    await using served = await serve({ "talker/agent.py": source }, "talker");
    await served.loaded;
    await served.triton.unloadModel("m");
    await served.triton.close();
    expect(served.lines).toContain("repository agent 'talker' failed at UNLOAD of 'm': ValueError: not now");
    expect(served.lines).toContain("repository agent 'talker': line 4999");
  });

  it("ends at the limit when it hangs", async () => {
    const clock = new VirtualClock();
    const source = `import time\ndef LOAD(model):\n    print("waiting", flush=True)\n    time.sleep(1e6)`;
    await using served = await serve({ "slow/agent.py": source }, "slow", {
      clock,
      repositoryAgentTimeoutSecs: 20,
    });
    await expect.poll(() => served.lines).toContain("repository agent 'slow': waiting");
    expect(await reasonAfter(served, clock, 20)).toContain(
      "repository agent 'slow' of model 'm': LOAD: expected an answer within 20 s (repositoryAgentTimeoutSecs), got none",
    );
  });
});
