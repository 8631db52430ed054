/*
 * A text generator over SSE and gRPC for 32 clients at a time, all in one loop of the model. The program ends after the
 * demonstration. `npm start -- --serve` serves until Ctrl-C, on Triton's ports.
 */

import { DecoupledModelClient } from "@tritonjs/client/grpc";
import { Triton } from "@tritonjs/core";
import { bindTextGenerator } from "./generator.js";

const serve = process.argv.includes("--serve");
await using triton = new Triton(serve ? {} : { httpPort: 0, grpcPort: 0, metricsPort: 0 });
const { steps } = bindTextGenerator(triton);
const { addresses } = await triton.serve();

const prompts = ["Alice ", "The rabbit", "Down ", "Oh dear", "She ", "a watch", "the well", "pictures "];

/** A stream of server-sent events, as a browser reads it. */
async function overHttp(prompt: string, seed: number): Promise<string> {
  const answer = await fetch(`${addresses.http!.url}/v2/models/text-generator/generate_stream`, {
    method: "POST",
    body: JSON.stringify({ text_input: prompt, max_tokens: 60, seed }),
  });
  const events = (await answer.text()).split("\n\n").filter(Boolean);
  return events.map((event) => JSON.parse(event.slice("data: ".length)).text_output).join("");
}

const client = new DecoupledModelClient(addresses.grpc!.url, "text-generator");

/** A stream of gRPC. */
async function overGrpc(prompt: string, seed: number): Promise<string> {
  let text = "";
  for await (const { text_output } of client.inferSample({
    text_input: [prompt],
    max_tokens: [60],
    seed: [seed],
  })) {
    text += new TextDecoder().decode(text_output!.data[0] as Uint8Array);
  }
  return text;
}

const texts = await Promise.all(
  Array.from({ length: 32 }, (_, i) => {
    // Request each text twice, once over each transport.
    const seed = Math.floor(i / 2);
    const prompt = prompts[seed % prompts.length]!;
    return (i % 2 === 0 ? overHttp : overGrpc)(prompt, seed).then((text) => prompt + text);
  }),
);
for (let i = 0; i < 8; i += 2) console.log(texts[i]);
const agree = texts.every((text, i) => text === texts[i - (i % 2)]);
console.log(`SSE and gRPC ${agree ? "agree" : "differ"}`);
console.log(
  `${texts.length} texts in ${steps.length} steps, up to ${Math.max(...steps)} of them in one step`,
);

await client.close();
if (serve) {
  console.log(`serving at ${addresses.http!.url} and ${addresses.grpc!.url}; Ctrl-C ends`);
  await new Promise((resolve) => process.once("SIGINT", resolve));
}
