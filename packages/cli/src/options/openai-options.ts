import type { OpenAiGroup } from "@tritonjs/openai";
import { integer, list, text, value } from "./option.js";
import { OptionError } from "./option-error.js";
import { readInteger } from "./read-value.js";

/** Groups of endpoints, with the names of Triton's OpenAI frontend. */
const GROUPS: readonly OpenAiGroup[] = ["inference", "model-repository", "metrics", "health"];

/** Groups of endpoints that need a header. */
export interface OpenAiRestriction {
  readonly groups: readonly OpenAiGroup[];
  readonly header: string;
  readonly value: string;
}

const none: readonly OpenAiRestriction[] = [];

/** Options of the OpenAI frontend. It listens if it has a port. */
export const openAiOptions = {
  "openai-port": value(
    "integer",
    "Port to listen on for OpenAI's endpoints, such as 9000; unless given, there are none.",
    undefined as number | undefined,
    (text) => readInteger(text),
  ),
  "openai-address": text("Address to listen on for OpenAI's endpoints.", "0.0.0.0"),
  "openai-api-key": list(
    "key",
    "Key that clients of OpenAI's endpoints must send, or sha256: and its hash. May be given several times. " +
      "Other users of the machine see command lines, so set TRITONJS_OPENAI_API_KEY instead.",
    readKey,
  ),
  "openai-api-key-file": text("File with a key, or sha256: and its hash, on each line.", "", {
    completes: "file",
  }),
  "openai-restricted-api": value(
    "<apis>:<key>=<value>",
    "Comma-separated groups of OpenAI's endpoints that need the header <key> with this value: inference, " +
      "model-repository, metrics, health.",
    none,
    readOpenAiRestriction,
  ),
  "openai-chat-template": list(
    "<model>=<directory>",
    "Directory with the tokenizer_config.json of a model, whose chat template makes the prompt. May be given several times.",
    readPair,
  ),
  "openai-tool-call-family": list(
    "<model>=<family>",
    "Form in which a model writes calls of tools, where its chat template does not show it: hermes, llama3, mistral, " +
      "pythonic, deepseek or json. May be given several times.",
    readPair,
  ),
  "openai-default-max-tokens": integer(
    "max_tokens of requests to OpenAI's endpoints without one; 0 for 16 in completions and the model's own limit in chats.",
    0,
  ),
  "openai-max-body-size": integer(
    "Largest body of a request to OpenAI's endpoints in bytes.",
    64 * 1024 * 1024,
  ),
  "openai-cors-origin": list(
    "origin",
    "Origin of web pages that may use OpenAI's endpoints; * for all. May be given several times.",
    readOrigin,
  ),
};

/** Reads the origin of web pages. */
export function readOrigin(origin: string): string {
  if (origin === "*" || (URL.canParse(origin) && new URL(origin).origin === origin)) return origin;
  throw new OptionError(`expected * or an origin such as https://app.example.com, got ${origin}`);
}

function readKey(key: string): string {
  if (key !== "") return key;
  throw new OptionError("--openai-api-key: expected a key, got an empty text");
}

/** Reads `<model>=<value>`. */
function readPair(text: string): readonly [model: string, value: string] {
  const equals = text.indexOf("=");
  const pair = [text.slice(0, equals), text.slice(equals + 1)] as const;
  if (equals > 0 && pair[1] !== "") return pair;
  throw new OptionError(`expected <model>=<value>, got ${text}`);
}

/** Reads `<group>,<group>:<key>=<value>`. */
function readOpenAiRestriction(
  text: string,
  previous: readonly OpenAiRestriction[],
): readonly OpenAiRestriction[] {
  const [, names, header, secret] = /^([^:]+):([^=]+)=(.+)$/.exec(text) ?? [];
  if (names === undefined || header === undefined || secret === undefined) {
    throw new OptionError(`--openai-restricted-api: expected '<apis>:<key>=<value>', got ${text}`);
  }
  const restricted = new Set(previous.flatMap(({ groups }) => groups));
  const groups = names.split(",").map((name) => {
    const group = GROUPS.find((known) => known === name);
    if (group === undefined) {
      throw new OptionError(`--openai-restricted-api: expected one of ${GROUPS.join(", ")}, got ${name}`);
    }
    if (restricted.has(group)) {
      throw new OptionError(`--openai-restricted-api: expected each group once, got ${group} twice`);
    }
    restricted.add(group);
    return group;
  });
  return [...previous, { groups, header, value: secret }];
}
