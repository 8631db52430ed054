import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

/**
 * An OpenAI-compatible server for the demonstration: it repeats the words of the last message, and refuses the model
 * "busy". An answer to "forever" ends when its client leaves.
 */
export async function startUpstream() {
  const server = createServer(async (request, response) => {
    const {
      model,
      messages,
      max_tokens = 16,
    } = (await json(request)) as {
      model: string;
      messages: { content: string }[];
      max_tokens?: number;
    };
    if (model === "busy") {
      response.writeHead(429, { "retry-after": "2" }).end('{"error":{"message":"too many requests"}}');
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (chunk: object) => response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    const words = messages.at(-1)!.content.split(" ");
    const endless = words.includes("forever");
    for (let i = 0; (endless || i < Math.min(words.length, max_tokens)) && !response.destroyed; i++) {
      send({ choices: [{ index: 0, delta: { content: `${words[i % words.length]} ` } }] });
      if (endless) await new Promise((resolve) => setImmediate(resolve));
    }
    send({
      choices: [{ index: 0, delta: {}, finish_reason: words.length > max_tokens ? "length" : "stop" }],
    });
    send({ choices: [], usage: { prompt_tokens: words.length, completion_tokens: words.length } });
    response.end("data: [DONE]\n\n");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return { baseUrl, close: () => server.close() };
}
