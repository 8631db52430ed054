import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { batch, Triton } from "@tritonjs/core";
import { textGenerator } from "@tritonjs/llm";
import { tritonProvider } from "@tritonjs/llm/ai-sdk";
import { TritonChatModel } from "@tritonjs/llm/langchain";
import { mcpServer } from "@tritonjs/llm/mcp";
import { generateText, rerank } from "ai";

/*
 * Models of this program in the AI SDK, in LangChain and behind the Model Context Protocol, without a server.
 *
 *   npm start
 */

await using triton = new Triton();

// Rules in place of networks, so that the example needs no weights.
triton.bind({
  modelName: "porter",
  inferFunc: textGenerator(function* ({ messages }) {
    yield "You said: ";
    yield String(messages!.at(-1)!.content);
  }),
});
triton.bind({
  modelName: "letters",
  inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
  outputs: [{ name: "embedding", dtype: "FP32", shape: [26] }],
  config: { maxBatchSize: 32 },
  inferFunc: batch(({ text }) => {
    const rows = text.shape[0]!;
    const embedding = new Float32Array(rows * 26);
    for (let row = 0; row < rows; row++) {
      for (const letter of text.text(row, 0).toLowerCase().match(/[a-z]/g) ?? []) {
        const at = row * 26 + letter.charCodeAt(0) - 97;
        embedding[at] = embedding[at]! + 1;
      }
    }
    return { embedding };
  }),
});
const prices = triton.bind({
  modelName: "prices",
  inputs: [
    { name: "rooms", dtype: "INT32", shape: [1] },
    { name: "area", dtype: "FP32", shape: [1] },
  ],
  outputs: [{ name: "price", dtype: "FP32", shape: [1] }],
  config: { maxBatchSize: 32 },
  inferFunc: batch(({ rooms, area }) => ({
    price: Float32Array.from(
      { length: rooms.shape[0]! },
      (_, i) => 1000 * rooms.get(i, 0) + 50 * area.get(i, 0),
    ),
  })),
});
await triton.ready();

// The AI SDK.
const provider = tritonProvider(triton);
const { text } = await generateText({ model: provider("porter"), prompt: "hello" });
console.log("AI SDK:", text);
const documents = ["a green tree", "the red sea", "sesame seeds"];
const { ranking } = await rerank({
  model: provider.rerankingModel("letters"),
  query: "see a red tree",
  documents,
});
console.log("ranked:", ranking.map(({ document }) => document).join(", "));

// LangChain.
const chat = new TritonChatModel({ triton, model: "porter" });
const reply = await chat.invoke("good day");
console.log("LangChain:", reply.content);

// The Model Context Protocol, here with both of its sides in one process.
const [near, far] = InMemoryTransport.createLinkedPair();
await mcpServer([{ model: prices, description: "Estimates the price of a flat." }]).connect(far);
const client = new Client({ name: "example", version: "1.0.0" });
await client.connect(near);
const { tools } = await client.listTools();
console.log("tool:", tools[0]!.name, JSON.stringify(tools[0]!.inputSchema.properties));
const answer = await client.callTool({ name: "prices", arguments: { rooms: 3, area: 70.5 } });
console.log("answer:", JSON.stringify(answer.structuredContent));
await client.close();
