/*
 * A page with a chat, and the model behind it, in one process. `npm start -- --once` asks one question and ends.
 */
import { openChatServer } from "./chat-server.js";

const once = process.argv.includes("--once");
const { url, close } = await openChatServer(once ? 0 : 8080);
if (once) {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "stories",
      messages: [{ role: "user", content: "Tell me a story about a red cat." }],
      temperature: 0,
      max_tokens: 100,
    }),
  });
  const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] };
  console.log(choices[0]!.message.content);
} else {
  console.log(`open ${url} in a browser; Ctrl-C ends`);
  await new Promise((resolve) => process.once("SIGINT", resolve));
}
await close();
