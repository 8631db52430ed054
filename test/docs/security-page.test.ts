import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { MAX_WAITING_BYTES } from "../../packages/core/src/observe/tracing.js";
import { MAX_BYTES } from "../../packages/core/src/system/files.js";
import { GRPC_DEFAULTS } from "../../packages/grpc/src/index.js";
import {
  MAX_OTHER_FIELDS,
  MAX_PARAMETERS,
  MAX_STRINGS,
  MAX_TENSOR_PARAMETERS,
} from "../../packages/grpc/src/infer/infer-request-limits.js";
import { BURST, RESETS_PER_SECOND } from "../../packages/grpc/src/transport/connection.js";
import { MAX_FIELDS } from "../../packages/grpc/src/transport/method.js";
import { maxBodySize } from "../../packages/http/src/exchange/request.js";
import {
  DEFAULT_MAX_INPUT_SIZE,
  MAX_CHUNKS,
  MAX_DATA_DEPTH,
  MAX_JSON_MEMBERS,
  MAX_JSON_OBJECTS,
  MAX_JSON_STRINGS,
  MAX_JSON_VALUES,
  MAX_RANK,
  MAX_TENSORS,
} from "../../packages/http/src/limits.js";
import { DEFAULT_HTTP_LIMITS } from "../../packages/http/src/server/listening-frontend.js";
import { MOST_TEMPLATE } from "../../packages/llm/src/chat/chat-template.js";
import { MOST_DEPTH, OWN_BYTES, OWN_STEPS } from "../../packages/llm/src/chat/render-budget.js";
import { MOST_TOOLS } from "../../packages/llm/src/openai/chat-request.js";
import { MOST_INPUTS } from "../../packages/llm/src/openai/embeddings.js";
import { LONGEST_TEXT, MOST_PARTS } from "../../packages/llm/src/openai/form-body.js";
import { MAX_BODY_SIZE, MAX_CHOICES } from "../../packages/llm/src/openai/openai-handler.js";
import { MAX_STEPS } from "../../packages/llm/src/structured/grammar-jobs.js";
import { GRAMMAR_LIMITS, MAX_FORMAT } from "../../packages/llm/src/structured/structured-output.js";
import * as ofFiles from "../../packages/protocol/src/file-memory.js";
import { MOST_LEVELS } from "../../packages/protocol/src/json.js";
import { MAX_OBJECTS } from "../../packages/repository/src/directories/cloud-storage.js";
import { REQUEST_MEMORY_DEFAULTS } from "../../packages/server/src/service/request-memory.js";
import { MAX_REGIONS } from "../../packages/server/src/shared-memory/shared-memory.js";
import { repositoryRoot } from "../support/repository.js";

const page = readFileSync(join(repositoryRoot, "docs/security.md"), "utf8");

/** The cells of a table of the page, without its head and the rows that only name a group. */
function rows(name: string): string[][] {
  const [, text = ""] = new RegExp(`<!-- ${name} -->\n([\\s\\S]*?)<!-- end of ${name} -->`).exec(page) ?? [];
  return text
    .trimEnd()
    .split("\n")
    .slice(2)
    .map((line) =>
      line
        .slice(2, -2)
        .split(" | ")
        .map((cell) => cell.trim()),
    )
    .filter(([first]) => !first!.startsWith("**"));
}

const bytes = (count: number) => `${count.toLocaleString("en-US")} bytes`;
const ms = (count: number) => `${count.toLocaleString("en-US")} ms`;
const count = (number: number) => number.toLocaleString("en-US");

/** The limits of the source, by their names on the page. */
const limits: Readonly<Record<string, string>> = {
  "`http({ maxInputSize })`": bytes(DEFAULT_MAX_INPUT_SIZE),
  "body of an HTTP request": bytes(maxBodySize(DEFAULT_MAX_INPUT_SIZE, false)),
  "chunks of a body": count(MAX_CHUNKS),
  "values in a JSON document": count(MAX_JSON_VALUES),
  "objects in a JSON document": count(MAX_JSON_OBJECTS),
  "members of an object": count(MAX_JSON_MEMBERS),
  "strings in the arrays of a JSON document": count(MAX_JSON_STRINGS),
  "dimensions of an input": count(MAX_RANK),
  "levels of `data`": count(MAX_DATA_DEPTH),
  "inputs, and outputs, of a request": count(MAX_TENSORS),
  "`limits.maxHeaderSize`": bytes(DEFAULT_HTTP_LIMITS.maxHeaderSize),
  "`limits.headersTimeoutMs`": ms(DEFAULT_HTTP_LIMITS.headersTimeoutMs),
  "`limits.requestTimeoutMs`": ms(DEFAULT_HTTP_LIMITS.requestTimeoutMs),
  "`limits.keepAliveTimeoutMs`": ms(DEFAULT_HTTP_LIMITS.keepAliveTimeoutMs),
  "`limits.sendTimeoutMs`": ms(DEFAULT_HTTP_LIMITS.sendTimeoutMs),
  "`grpc({ maxReceiveMessageSize })`": bytes(GRPC_DEFAULTS.maxReceiveMessageSize),
  "`maxMetadataSize`": bytes(GRPC_DEFAULTS.maxMetadataSize),
  "`maxConcurrentStreams`": count(GRPC_DEFAULTS.maxConcurrentStreams),
  "`maxSessionMemory`": bytes(GRPC_DEFAULTS.maxSessionMemory),
  "`http2MinRecvPingIntervalWithoutDataMs`": ms(GRPC_DEFAULTS.http2MinRecvPingIntervalWithoutDataMs),
  "`http2MaxPingStrikes`": count(GRPC_DEFAULTS.http2MaxPingStrikes),
  "resets at once": count(BURST),
  "resets a second": count(RESETS_PER_SECOND),
  "parameters of a request": count(MAX_PARAMETERS),
  "parameters of its tensors": count(MAX_TENSOR_PARAMETERS),
  "elements in `bytes_contents`": count(MAX_STRINGS),
  "fields of a gRPC request that are not among these": count(MAX_OTHER_FIELDS),
  "fields of another message": count(MAX_FIELDS),
  "`requestMemory.byteSize`": bytes(Math.max(2 ** 30, REQUEST_MEMORY_DEFAULTS.byteSize)),
  "`requestMemory.maxDecompressions`": count(REQUEST_MEMORY_DEFAULTS.maxDecompressions),
  "`requestMemory.maxWaitingDecompressions`": count(REQUEST_MEMORY_DEFAULTS.maxWaitingDecompressions),
  "`requestMemory.maxCompressionRatio`": count(REQUEST_MEMORY_DEFAULTS.maxCompressionRatio),
  "regions of shared memory": count(MAX_REGIONS),
  "unwritten bytes of traces": bytes(MAX_WAITING_BYTES),
  "a configuration or a file of labels": bytes(MAX_BYTES),
  "objects of a repository in a cloud": count(MAX_OBJECTS),
  "body of an OpenAI request": bytes(MAX_BODY_SIZE),
  "choices of an OpenAI request": count(MAX_CHOICES),
  "tools of a chat": count(MOST_TOOLS),
  "inputs of an embeddings request": count(MOST_INPUTS),
  "steps of a chat template": count(OWN_STEPS),
  "values of a chat template": bytes(OWN_BYTES),
  "calls of macros within each other": count(MOST_DEPTH),
  "characters of a chat template": count(MOST_TEMPLATE),
  "parts of an OpenAI form": count(MOST_PARTS),
  "text in an OpenAI form": bytes(LONGEST_TEXT),
  "steps of a format, for reading it and for its texts": count(MAX_STEPS),
  "memory of the grammars of a model": bytes(GRAMMAR_LIMITS.bytes),
  "characters of a format": count(MAX_FORMAT),
  "values of a model file, in memory": bytes(ofFiles.MOST_FILE_MEMORY),
  "levels of JSON of a model file": count(ofFiles.MOST_FILE_LEVELS),
  "inputs, and outputs, of a model": count(ofFiles.MOST_TENSORS),
  "levels of JSON that an OpenAI request passes on": count(MOST_LEVELS),
};

describe("the table of limits", () => {
  it("has the defaults of the source, each with a reason", () => {
    const table = rows("limits");
    expect(Object.fromEntries(table.map(([name, value]) => [name, value]))).toEqual(limits);
    for (const [name, , reason] of table) expect(reason, name).not.toBe("");
  });
});

describe("the table of attacks", () => {
  it.each(rows("attacks"))("names tests that exist: %s", (_attack, bound, tests) => {
    expect(bound).not.toBe("");
    const named = tests!.split("; ").map((one) => /^`([^`]+)`((?: "[^"]+")+)$/.exec(one) ?? [one]);
    for (const [text, path, names] of named) {
      expect(path, text).toBeDefined();
      expect(existsSync(join(repositoryRoot, path!)), path).toBe(true);
      const source = readFileSync(join(repositoryRoot, path!), "utf8");
      for (const [, name] of names!.matchAll(/"([^"]+)"/g)) expect(source, path).toContain(name);
    }
  });
});

it("each class of Triton's advisories has an attack in the table", () => {
  const attacks = rows("attacks").map(([attack]) => attack!);
  const classes = rows("advisories");
  expect(classes.length).toBe(17);
  for (const [what, example, named] of classes) {
    expect(example, what).toMatch(/^CVE-\d{4}-\d+(?:, CVE-\d{4}-\d+)*$/);
    for (const start of named!.split("; "))
      expect(
        attacks.some((attack) => attack.startsWith(start)),
        start,
      ).toBe(true);
  }
});
