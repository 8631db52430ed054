import { Triton } from "@tritonjs/core";
import { textGenerator } from "@tritonjs/llm";
import { openai } from "@tritonjs/llm/openai";

/*
 * A model that calls a tool of its client, and answers with the tool's result.
 *
 *   npm start
 */

await using triton = new Triton();
triton.bind({
  modelName: "porter",
  // A rule in place of an engine: a question about stock needs the tool, and its result becomes the answer.
  inferFunc: textGenerator(function* ({ messages, tools }) {
    const last = messages!.at(-1)!;
    const [, item] = /how many (\w+)/.exec(String(last.content)) ?? [];
    if (last.role === "tool") yield `We have ${last.content} of them.`;
    else if (item !== undefined && tools?.some((tool) => tool.function.name === "stock"))
      yield { toolCall: { name: "stock", arguments: JSON.stringify({ item }) } };
    else yield "Ask me about our stock.";
  }),
});
const { addresses } = await triton.serve({ frontends: [openai({ port: 0 })] });

interface ToolCall {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}
interface Choice {
  readonly finish_reason: string;
  readonly message: { readonly content: string | null; readonly tool_calls?: readonly ToolCall[] };
}

const parameters = { type: "object", properties: { item: { type: "string" } }, required: ["item"] };
const tools = [{ type: "function", function: { name: "stock", parameters } }];
const messages: object[] = [{ role: "user", content: "how many umbrellas do you have?" }];

/** Sends the chat, and adds the answer to it. */
async function complete(): Promise<Choice> {
  const answer = await fetch(`${addresses.openai!.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "porter", messages, tools }),
  });
  const { choices } = (await answer.json()) as { choices: [Choice] };
  messages.push({ role: "assistant", ...choices[0].message });
  return choices[0];
}

const asked = await complete();
for (const call of asked.message.tool_calls!) {
  console.log(`${asked.finish_reason}: ${call.function.name}(${call.function.arguments})`);
  const stock: Record<string, number> = { umbrellas: 7 };
  const { item } = JSON.parse(call.function.arguments) as { item: string };
  messages.push({ role: "tool", tool_call_id: call.id, content: String(stock[item] ?? 0) });
}
const answered = await complete();
console.log(`${answered.finish_reason}: ${answered.message.content}`);
