import { readFileSync } from "node:fs";
import type { Frontend } from "@tritonjs/core";
import type { ChatTemplateSettings, OpenAiOptions } from "@tritonjs/openai";
import { OptionError } from "../options/option-error.js";
import type { OptionValues } from "../options/options.js";

/**
 * Loads the OpenAI frontend and sets it up, if the command line asks for it.
 *
 * @throws OptionError for a file of keys that cannot be read or has none
 */
export async function openOpenAi(values: OptionValues): Promise<Frontend | undefined> {
  const port = values["openai-port"];
  if (port === undefined) return undefined;
  const { openai } = await import("@tritonjs/openai");
  return openai(openAiSettings(values, port));
}

/** The options of the frontend. */
export function openAiSettings(values: OptionValues, port: number): OpenAiOptions {
  const origins = values["openai-cors-origin"];
  const defaultMaxTokens = values["openai-default-max-tokens"];
  return {
    port,
    address: values["openai-address"],
    apiKeys: [...values["openai-api-key"], ...keysOfFile(values["openai-api-key-file"])],
    restrictions: Object.fromEntries(
      values["openai-restricted-api"].flatMap(({ groups, header, value }) =>
        groups.map((group) => [group, { header, value }]),
      ),
    ),
    chatTemplates: Object.fromEntries(values["openai-chat-template"]),
    toolCallFamilies: Object.fromEntries(values["openai-tool-call-family"]) as NonNullable<
      ChatTemplateSettings["toolCallFamilies"]
    >,
    maxBodySize: values["openai-max-body-size"],
    ...(defaultMaxTokens > 0 && { defaultMaxTokens }),
    ...(origins.length > 0 && { cors: { origins: origins.includes("*") ? true : origins } }),
  };
}

/** The keys of a file. A file without keys would leave the endpoints open. */
function keysOfFile(path: string): string[] {
  if (path === "") return [];
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new OptionError(`Bad option: "--openai-api-key-file".\n${(error as Error).message}`, "alone");
  }
  const keys = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  if (keys.length > 0) return keys;
  throw new OptionError(
    `Bad option: "--openai-api-key-file".\nexpected a key on a line of ${path}, got none`,
    "alone",
  );
}
