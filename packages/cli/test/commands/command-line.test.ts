import { readFileSync } from "node:fs";
import { VERSION } from "@tritonjs/core/internal";
import { describe, expect, it } from "vitest";
import { run } from "../../src/run.js";
import { TestTerminal } from "../support/test-terminal.js";

async function said(...args: string[]) {
  const terminal = new TestTerminal();
  const code = await run(args, terminal);
  return { code, output: terminal.output, errors: terminal.errors };
}

describe("the tritonjs command", () => {
  it("prints its version", async () => {
    expect(await said("--version")).toEqual({ code: 0, output: `${VERSION}\n`, errors: "" });
  });

  it.each([["--help"], ["serve", "--help"], ["serve", "-h"], ["config", "check", "--help"]])(
    "prints help on standard output: %s %s %s",
    async (...args) => {
      const { code, output, errors } = await said(...args.filter((arg) => arg !== undefined));
      expect({ code, errors }).toEqual({ code: 0, errors: "" });
      expect(output).toContain("Usage: tritonjs");
    },
  );

  it("passes the options of perf to the tools, and loads them for no other command", async () => {
    const { code, output } = await said("perf", "--help");
    expect(code).toBe(0);
    expect(output).toContain("--concurrency-range <range>");
    expect(await said("perf")).toEqual({
      code: 99,
      output: "",
      errors: "error: Invalid argument: -m: expected the name of a model\n",
    });
    const imports = readFileSync(new URL("../../src/run.ts", import.meta.url), "utf8");
    expect(imports).not.toMatch(/^import .*"\.\/(tools|perf|analyze|trace)\b/m);
  });

  it("prints an error on standard error for options without a command", async () => {
    const { code, output, errors } = await said("--model-repository=x");
    expect({ code, output }).toEqual({ code: 1, output: "" });
    expect(errors).toContain("Options of tritonserver go with 'tritonjs serve'");
  });

  it.each([
    [["serv"], "(Did you mean serve?)"],
    [["config", "chek"], "(Did you mean check?)"],
    [["types", "--ot", "x"], "(Did you mean --out?)"],
    [["serve", "--model-repositry=x"], "Did you mean '--model-repository'?"],
  ])("proposes what was meant: %j", async (args, proposal) => {
    const { code, errors } = await said(...args);
    expect(code).toBe(1);
    expect(errors).toContain(proposal);
    expect(errors).not.toContain("--grpc-keepalive-time");
  });

  it.each(["--openai-restricted-api=nonsense", "--http-port=x", "--trace-config=rate=often"])(
    "says what is wrong with %s without the usage, which would push it off the screen",
    async (option) => {
      const { code, errors } = await said("serve", "--model-repository=x", option);
      expect(code).toBe(1);
      expect(errors).toContain(
        `Bad option: "${option.slice(0, option.lastIndexOf("=")).replace("=rate", " rate")}"`,
      );
      expect(errors.trimEnd().split("\n")).toHaveLength(2);
    },
  );

  it("lists its commands when called without arguments", async () => {
    const { code, output, errors } = await said();
    expect({ code, output }).toEqual({ code: 1, output: "" });
    expect(errors).toContain("Usage: tritonjs");
  });

  it.each([["config"], ["nosuch"], ["config", "nosuch"], ["types"]])(
    "exits 1 for an unknown or incomplete command: %s %s",
    async (...args) => {
      const { code, output } = await said(...args.filter((arg) => arg !== undefined));
      expect({ code, output }).toEqual({ code: 1, output: "" });
    },
  );
});
