import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { StoryTeller } from "../support/story-teller.js";

interface Recorded {
  readonly text_input?: string;
  readonly messages?: unknown;
  readonly prompt: readonly number[];
  readonly tokens: readonly number[];
  readonly text: string;
}

const recorded: { maxTokens: number; texts: readonly Recorded[] } = JSON.parse(
  readFileSync(new URL("../fixtures/transformers-texts.json", import.meta.url), "utf8"),
);

let teller: StoryTeller;
beforeAll(() => {
  teller = new StoryTeller();
});
afterAll(() => teller.close());

it("texts of concurrent requests are token for token what transformers.js recorded on the same files", async () => {
  const pieces = await Promise.all(
    recorded.texts.map(({ text_input, messages }) =>
      teller.all({
        ...(text_input === undefined ? { messages } : { prompt: text_input }),
        stream: false,
        sampling: { max_tokens: recorded.maxTokens, logprobs: 0 },
      }),
    ),
  );
  for (const [i, { prompt, tokens, text }] of recorded.texts.entries()) {
    const [piece] = pieces[i]!;
    expect(piece!.text).toBe(text);
    expect(piece!.promptTokens).toBe(prompt.length);
    const chosen = (piece!.logprobs as Record<string, unknown>[]).map((token) =>
      Number(Object.keys(token)[0]),
    );
    expect(chosen).toEqual(tokens);
  }
});
