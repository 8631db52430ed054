import { sample, Triton } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { readArguments } from "../../src/options/read-arguments.js";
import { openOpenAi } from "../../src/serve/open-frontends.js";
import { TemporaryFolder } from "../support/temporary-folder.js";

const read = (args: readonly string[], environment = {}) => readArguments(args, environment).values;

describe("--openai-port", () => {
  it("opens OpenAI's endpoints; without it there are none", async () => {
    expect(await openOpenAi(read([]))).toBeUndefined();
    await using triton = new Triton();
    triton.bind({
      modelName: "m",
      inputs: [{ name: "text_input", dtype: "BYTES", shape: [1] }],
      outputs: [{ name: "text_output", dtype: "BYTES", shape: [1] }],
      inferFunc: sample(({ text_input }) => ({ text_output: [text_input.text(0)] })),
    });
    await using folder = await TemporaryFolder.create();
    const file = await folder.write("keys", "# of the team\nfrom-file\n\n");
    const environment = { TRITONJS_OPENAI_API_KEY: "from-environment" };
    const args = ["--openai-port=0", "--openai-address=127.0.0.1", `--openai-api-key-file=${file}`];
    const frontend = (await openOpenAi(read(args, environment)))!;
    const { addresses } = await triton.serve({ frontends: [frontend] });
    const status = async (key: string) => {
      const headers = { authorization: `Bearer ${key}` };
      return (await fetch(`${addresses.openai!.url}/v1/models`, { headers })).status;
    };
    expect([await status("from-file"), await status("from-environment"), await status("other")]).toEqual([
      200, 200, 401,
    ]);
  });

  it.each([
    ["--openai-api-key-file=/none", "no such file"],
    ["--openai-api-key=", "expected a key"],
    ["--openai-restricted-api=chat:k=v", "expected one of inference"],
    ["--openai-restricted-api=inference", "<apis>:<key>=<value>"],
    ["--openai-chat-template=m", "<model>=<value>"],
    ["--openai-tool-call-family=m=latin", "expected one of harmony"],
    ["--openai-cors-origin=example.com", "an origin"],
    ["--openai-port=8000", "same address and port"],
  ])("refuses %s", async (option, fault) => {
    const open = async () => {
      const frontend = await openOpenAi(read(["--openai-port=0", option]));
      await using triton = new Triton();
      await triton.serve({ frontends: [frontend!] });
    };
    await expect(open()).rejects.toThrow(fault);
  });
});
