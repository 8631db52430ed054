import { describe, expect, it } from "vitest";
import { readArguments } from "../../src/options/read-arguments.js";
import { TemporaryFolder } from "../support/temporary-folder.js";

describe("options from several sources", () => {
  it("are read from the command line, then the environment, then the configuration file", async () => {
    await using folder = await TemporaryFolder.create();
    const config = await folder.write(
      "server.json",
      JSON.stringify({ id: "file", "http-port": 1, "grpc-port": 2, "exit-timeout-secs": "3" }),
    );
    const { values } = readArguments(["--id=line", `--config=${config}`], {
      TRITONJS_ID: "environment",
      TRITONJS_HTTP_PORT: "10",
    });
    expect(values).toMatchObject({
      id: "line",
      "http-port": 10,
      "grpc-port": 2,
      "exit-timeout-secs": 3,
      "metrics-port": 8002,
    });
  });

  it("accept several values in a file and in the environment", async () => {
    await using folder = await TemporaryFolder.create();
    const config = await folder.write("server.json", JSON.stringify({ "load-model": ["a", "b"] }));
    const { values } = readArguments([], {
      TRITONJS_CONFIG: config,
      TRITONJS_MODEL_REPOSITORY: "x\ny",
      TRITONJS_MODEL_CONTROL_MODE: "explicit",
    });
    expect(values["load-model"]).toEqual(["a", "b"]);
    expect(values["model-repository"]).toEqual(["x", "y"]);
  });

  it("replace all values of a source with lower precedence", async () => {
    const { values } = readArguments(["--model-repository=mine"], { TRITONJS_MODEL_REPOSITORY: "x\ny" });
    expect(values["model-repository"]).toEqual(["mine"]);
  });

  it("list values of an earlier configuration file after those of a later one", async () => {
    await using folder = await TemporaryFolder.create();
    const first = await folder.write("first.json", JSON.stringify({ id: "first", "http-port": 1 }));
    const second = await folder.write("second.json", JSON.stringify({ id: "second" }));
    const { values } = readArguments([`--config=${first}`, `--config=${second}`], {});
    expect(values).toMatchObject({ id: "second", "http-port": 1 });
  });

  it("switch options without a value on and off in a file", async () => {
    await using folder = await TemporaryFolder.create();
    const on = await folder.write("on.json", JSON.stringify({ "grpc-reflection": true }));
    const off = await folder.write("off.json", JSON.stringify({ "grpc-reflection": false }));
    expect(readArguments([`--config=${on}`], {}).values["grpc-reflection"]).toBe(true);
    expect(readArguments([`--config=${off}`], {}).values["grpc-reflection"]).toBe(false);
  });
});

describe("environment variables", () => {
  it("switch options without a value on and off; empty variables are ignored", () => {
    const read = (text: string) =>
      readArguments([], { TRITONJS_GRPC_REFLECTION: text }).values["grpc-reflection"];
    expect([read("1"), read("0"), read("")]).toEqual([true, false, false]);
  });

  it("are rejected for the same reasons as the command line", () => {
    expect(() => readArguments([], { TRITONJS_HTTP_PORT: "x" })).toThrow('Bad option: "--http-port"');
  });
});

describe("a configuration file", () => {
  it.each([
    ["{", /^configuration file '.*': /],
    ["[]", /expected an object of options/],
    ['{"http-prt": 1}', /unknown option 'http-prt'/],
    ['{"config": "x"}', /unknown option 'config'/],
    ['{"id": null}', /option 'id': expected text, a number or a boolean/],
    ['{"http-port": "x"}', /Bad option: "--http-port"\.\nInvalid option value\. Got x/],
  ])("is rejected when it holds %s", async (text, reason) => {
    await using folder = await TemporaryFolder.create();
    const config = await folder.write("server.json", text);
    expect(() => readArguments([`--config=${config}`], {})).toThrow(reason);
  });

  it("is rejected when it does not exist", () => {
    expect(() => readArguments(["--config=/nonexistent.json"], {})).toThrow(/ENOENT/);
  });
});
