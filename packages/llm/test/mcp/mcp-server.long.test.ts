import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { batch, sample, Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import { type McpTool, mcpServer, type ToolModel } from "../../src/mcp/index.js";

let triton: Triton;
beforeEach(() => {
  triton = new Triton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
});
afterEach(() => triton.close());

/** A client of the protocol's own package, connected to a server of these tools. */
async function connect(...tools: (ToolModel | McpTool)[]): Promise<Client> {
  const [near, far] = InMemoryTransport.createLinkedPair();
  await mcpServer(tools).connect(far);
  const client = new Client({ name: "test", version: "1" });
  await client.connect(near);
  return client;
}

const weather = () =>
  triton.bind({
    modelName: "weather",
    inputs: [
      { name: "city", dtype: "BYTES", shape: [1] },
      { name: "history", dtype: "FP32", shape: [3] },
      { name: "days", dtype: "UINT8", shape: [1], optional: true },
    ],
    outputs: [
      { name: "celsius", dtype: "FP32", shape: [1] },
      { name: "hours", dtype: "INT64", shape: [-1] },
    ],
    config: { maxBatchSize: 8 },
    inferFunc: batch(({ history, city }) => {
      const rows = city.shape[0]!;
      const celsius = new Float32Array(rows);
      for (let row = 0; row < rows; row++) celsius[row] = history.get(row, 2) + city.text(row, 0).length;
      return { celsius, hours: Array.from({ length: rows }, () => [1n, 2n ** 60n]) };
    }),
  });

describe("an MCP server over models", () => {
  it("lists a tool for each, with schemas from its tensors", async () => {
    const client = await connect({ model: weather(), description: "Predicts the weather." });
    const { tools } = await client.listTools();
    expect(tools).toEqual([
      {
        name: "weather",
        description: "Predicts the weather.",
        inputSchema: {
          type: "object",
          properties: {
            city: { type: "string" },
            history: { type: "array", items: { type: "number" }, minItems: 3, maxItems: 3 },
            days: { type: "integer", minimum: 0, maximum: 255 },
          },
          required: ["city", "history"],
          additionalProperties: false,
        },
        outputSchema: {
          type: "object",
          properties: {
            celsius: { type: "number" },
            hours: { type: "array", items: { type: "integer" } },
          },
          required: ["celsius", "hours"],
          additionalProperties: false,
        },
      },
    ]);
  });

  it("runs a model with the values of one sample", async () => {
    const client = await connect(weather());
    const answer = await client.callTool({
      name: "weather",
      arguments: { city: "Rome", history: [1, 2, 3] },
    });
    expect(answer.structuredContent).toEqual({ celsius: 7, hours: [1, String(2n ** 60n)] });
  });

  it("answers with the responses of a decoupled model", async () => {
    const count = triton.bind({
      modelName: "count",
      inputs: [{ name: "to", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
      config: { batching: false, decoupled: true },
      inferFunc: sample(async function* ({ to }) {
        for (let i = 1; i <= to.get(0); i++) yield { text: [`${i}`] };
      }),
    });
    const client = await connect({ model: count, name: "count_to" });
    const answer = await client.callTool({ name: "count_to", arguments: { to: 3 } });
    expect(answer.structuredContent).toEqual({ responses: [{ text: "1" }, { text: "2" }, { text: "3" }] });
  });

  it("answers with the error of a model, and refuses unknown tools", async () => {
    const client = await connect(weather());
    const answer = await client.callTool({ name: "weather", arguments: { city: "Rome", history: [1] } });
    expect(answer).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("input 'history' of model 'weather'") }],
    });
    expect(await outcomeOf(client.callTool({ name: "wether" }))).toMatch(
      /unknown tool 'wether': expected one of 'weather'/,
    );
  });

  it("refuses names that the protocol does not allow, and two tools of one name", () => {
    const model = weather();
    expect(thrownBy(() => mcpServer([{ model, name: "the weather" }]))).toMatch(
      /name of a tool of mcpServer\(\): expected 1 to 64 letters, digits, '_' and '-', got 'the weather'/,
    );
    expect(thrownBy(() => mcpServer([model, model]))).toMatch(/expected one tool 'weather', got two/);
  });
});
