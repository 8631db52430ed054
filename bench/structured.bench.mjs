/*
 * What does a format of the answer cost? Reading a schema and the masks of its texts, with 128,000 tokens; and 16 streams
 * of a small decoder, of which the texts have a format or not.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { StructuredOutput, textGeneration } from "@tritonjs/llm";
import { root } from "../scripts/run.mjs";
import { median, PAIRS, short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

const TOKENS = 128_000;
const END = TOKENS;

const address = {
  type: "object",
  properties: { street: { type: "string", maxLength: 80 }, zip: { type: "string", pattern: "^\\d{5}$" } },
  required: ["street"],
};
const schemas = {
  "a person": {
    type: "object",
    properties: {
      name: { type: "string" },
      email: { type: "string", format: "email" },
      age: { type: "integer", minimum: 0, maximum: 150 },
      addresses: { type: "array", items: address, maxItems: 5 },
      role: { enum: ["admin", "editor", "viewer"] },
    },
    required: ["name", "age", "role"],
    additionalProperties: false,
  },
  "a call of one of three tools": {
    oneOf: ["search", "weather", "mail"].map((name) => ({
      type: "object",
      properties: {
        name: { const: name },
        arguments: { type: "object", properties: { text: { type: "string" } } },
      },
      required: ["name", "arguments"],
    })),
  },
  "any object": { type: "object" },
};
const texts = {
  "a person":
    '{"name": "Ada Lovelace", "email": "ada@example.com", "age": 36, "addresses": [{"street": "12 Saint James Square", "zip": "12345"}], "role": "admin"}',
  "a call of one of three tools":
    '{"name": "weather", "arguments": {"text": "Will it rain in London tomorrow?"}}',
  "any object": '{"name": "Ada", "list": [1, 2.5, true, null, {"deep": "value of a string"}]}',
};

const tokens = vocabulary();
const ids = new Map(tokens.map((token, id) => [token, id]));

const rows = {};
for (const [name, schema] of Object.entries(schemas)) {
  const structured = new StructuredOutput({ tokens: [...tokens, ""], spelling: "raw" }, [END]);
  // The first format sorts the vocabulary, and the first texts let the engine compile what they run.
  await structured.constrain({ type: "choice", texts: ["a"] });
  const reading = [];
  const first = [];
  const again = [];
  for (let run = 0; run < 40; run++) {
    // A new title makes the schema another one.
    const format = { type: "json_schema", schema: { ...schema, title: String(run) }, strict: false };
    let constraint;
    reading.push(await cpuOf(async () => (constraint = await structured.constrain(format))));
    first.push(...(await follow(constraint, tokensOf(texts[name]))));
    again.push(...(await follow(await structured.constrain(format), tokensOf(texts[name]))));
  }
  const warm = (values) => values.slice(values.length / 2);
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  rows[name] = {
    "reading the schema": short(median(warm(reading))),
    "a token of the first text": short(mean(warm(first))),
    "a token of later texts": short(mean(warm(again))),
  };
}

const { free, limited } = await streams();
rows["16 streams, without a format"] = { "a token": short(free) };
rows["16 streams, with a schema"] = { "a token": short(limited) };
report("structured", {
  rows,
  note: `Milliseconds of the processor. 128,000 tokens; the streams have a vocabulary of their own. With a schema, a token of 16 streams takes ${short(limited / free)} times what it takes without.`,
  document: "text-generation-decoder.md",
});

/** The milliseconds of the processor for the mask and the state of each token. */
async function follow(constraint, sequence) {
  const costs = [];
  for (const token of sequence) {
    costs.push(
      await cpuOf(async () => {
        await constraint.allowed();
        constraint.accept(token);
      }),
    );
  }
  constraint.release();
  return costs;
}

async function cpuOf(work) {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Words and parts of words of the documents and of installed packages, with bytes of every kind. */
function vocabulary() {
  const found = new Set(Array.from({ length: 0x250 }, (_, code) => String.fromCharCode(code)));
  const folders = [
    join(root, "docs"),
    ...["typescript/lib", "protobufjs", "fastify/docs"].map((one) => join(root, "node_modules", one)),
  ];
  for (const folder of folders) {
    let files = [];
    try {
      files = readdirSync(folder, { recursive: true, encoding: "utf8" });
    } catch {}
    for (const file of files) {
      if (!/\.(md|js|ts|json)$/.test(file)) continue;
      for (const [word] of readFileSync(join(folder, file), "utf8").matchAll(
        / ?[A-Za-z]+|\s+|[0-9]{1,3}|[^\sA-Za-z0-9]{1,4}/g,
      )) {
        for (let length = 1; length <= Math.min(word.length, 16); length++) found.add(word.slice(0, length));
        if (found.size >= TOKENS) return [...found].slice(0, TOKENS);
      }
    }
  }
  // Where few packages are installed, pairs of tokens.
  const pieces = [...found];
  for (let i = 0; found.size < TOKENS; i++)
    found.add(pieces[i % 300] + pieces[Math.floor(i / 300) % pieces.length]);
  return [...found].slice(0, TOKENS);
}

/** The longest tokens that spell a text. */
function tokensOf(text) {
  const sequence = [];
  for (let at = 0; at < text.length; ) {
    let length = 16;
    while (!ids.has(text.slice(at, at + length))) length--;
    sequence.push(ids.get(text.slice(at, at + length)));
    at += length;
  }
  return sequence;
}

/** Milliseconds of the processor for a token of 16 streams, medians of runs in turns. */
async function streams() {
  const directory = join(root, "examples", "text-generation", "models", "stories", "1");
  const triton = new Triton();
  const model = triton.bind({
    modelName: "stories",
    inferFunc: textGeneration({ directory, intraOpNumThreads: 1 }),
  });
  await model.ready();
  // No text ends before its limit, so that the batches of both kinds are equal.
  const schema = {
    type: "array",
    minItems: 40,
    items: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  };
  const run = async (more) => {
    let count = 0;
    const cost = await cpuOf(() =>
      Promise.all(
        Array.from({ length: 16 }, async (_, seed) => {
          const sampling = { max_tokens: 100, temperature: 0.8, seed, ...more };
          const inputs = {
            text_input: [`Once there was a fox, and ${seed} dogs.`],
            stream: [true],
            return_num_output_tokens: [true],
            sampling_parameters: [JSON.stringify(sampling)],
          };
          for await (const { num_output_tokens } of model.stream(inputs))
            count += Number(num_output_tokens.get(0));
        }),
      ),
    );
    return cost / count;
  };
  const kinds = { free: { ignore_eos: true }, limited: { guided_json: schema } };
  const costs = { free: [], limited: [] };
  for (let round = 0; round <= PAIRS; round++) {
    for (const [kind, more] of Object.entries(kinds)) {
      const cost = await run(more);
      if (round > 0) costs[kind].push(cost);
    }
  }
  await triton.close();
  return { free: median(costs.free), limited: median(costs.limited) };
}
