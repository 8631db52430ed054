/*
 * A decoder of a model repository writes eight stories at a time. The program ends after the demonstration. `npm start
 * -- --serve` serves until Ctrl-C, on Triton's ports.
 */
import { fileURLToPath } from "node:url";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { repository } from "@tritonjs/repository";

const serve = process.argv.includes("--serve");
// The program is in the folder `dist`.
const models = fileURLToPath(new URL("../models", import.meta.url));
await using triton = new Triton({ extensions: [repository({ modelRepository: models })] });
const { addresses } = await triton.serve({ frontends: [http(serve ? {} : { port: 0 })] });
const url = `${addresses.http!.url}/v2/models/stories`;

/** Reads a stream of server-sent events. `heard` gets each piece of the text as it comes. */
async function story(wish: string, heard: (piece: string) => void = () => {}): Promise<string> {
  const answer = await fetch(`${url}/generate_stream`, {
    method: "POST",
    body: JSON.stringify({
      messages: JSON.stringify([{ role: "user", content: wish }]),
      stream: true,
      max_tokens: 100,
    }),
  });
  let text = "";
  let rest = "";
  for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
    const events = (rest + chunk).split("\n\n");
    rest = events.pop()!;
    for (const event of events) {
      const { text_output: piece } = JSON.parse(event.slice("data: ".length));
      text += piece;
      heard(piece);
    }
  }
  return text;
}

let pieces = 0;
const alone = await story("Tell me a story about a red cat.", () => {
  pieces++;
});
console.log(`${alone}\n(in ${pieces} pieces)`);

const animals = ["cat", "dog", "fox", "owl", "mouse", "bear", "frog", "duck"];
const stories = await Promise.all(animals.map((animal) => story(`Tell me a story about a red ${animal}.`)));
for (const text of stories) console.log(`${text.split(".", 1)[0]}. ...`);
console.log(`the cat's story is ${stories[0] === alone ? "the same" : "another one"}`);

if (serve) {
  console.log(`serving at ${addresses.http!.url}; Ctrl-C ends`);
  await new Promise((resolve) => process.once("SIGINT", resolve));
}
