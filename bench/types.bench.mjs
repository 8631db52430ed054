/*
 * What types of 100 models cost: `tsc` of a program that calls each of them, against the same program without types, and
 * completions of its editor's server.
 *
 *   node bench/types.bench.mjs [--models 100]
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const given = process.argv.indexOf("--models");
const MODELS = given < 0 ? 100 : Number(process.argv[given + 1]);
const ROUNDS = 9;

const cache = fileURLToPath(new URL("../node_modules/.cache/", import.meta.url));
mkdirSync(cache, { recursive: true });
const folder = mkdtempSync(join(cache, "types-bench-"));
const tsc = join(createRequire(import.meta.url).resolve("typescript/package.json"), "../bin/tsc");

const DTYPES = ["FP32", "INT64", "BYTES", "FP16", "UINT8"];

/** A model as `tritonjs types` writes it: images, texts, optional inputs, ten labels for one in five, those of ImageNet for two. */
function modelText(index) {
  const tensor = (name, place, more = "") =>
    `{ readonly name: "${name}"; readonly dtype: "${DTYPES[(index + place) % 5]}"; readonly shape: readonly [3, 224, -1]${more} }`;
  const labels = Array.from(
    { length: index % 50 === 0 ? 1_000 : index % 5 === 0 ? 10 : 0 },
    (_, i) => `"class ${i} of ${index}"`,
  ).join(", ");
  const scores = `{ readonly name: "scores"; readonly dtype: "FP32"; readonly shape: readonly [1000]${labels && `; readonly labels: readonly [${labels}]`} }`;
  return `  "model-${index}": {
    inputs: readonly [${tensor("image", 0)}, ${tensor("mask", 1, "; readonly optional: true")}, ${tensor("third", 2)}];
    outputs: readonly [${tensor("first", 3)}, ${tensor("second", 4)}, ${scores}];${index % 7 === 0 ? "\n    decoupled: true;" : ""}
  };`;
}

const indices = Array.from({ length: MODELS }, (_, i) => i);
writeFileSync(
  join(folder, "models.d.ts"),
  `export interface Models {\n${indices.map(modelText).join("\n")}\n}\n`,
);

function programText(typed) {
  const calls = indices.map((i) => {
    const inputs = "{ image: [] as never, third: [] as never }";
    if (i % 7 === 0)
      return `for await (const { scores } of client.model("model-${i}").streamSample(${inputs})) use(scores);`;
    return `use((await client.model("model-${i}").inferSample(${inputs})).scores);`;
  });
  const head = typed
    ? 'import { createClient } from "@tritonjs/client/http";\nimport type { Models } from "./models.js";\nconst client = createClient<Models>("host:8000");'
    : 'import { createClient } from "@tritonjs/client/http";\nconst client = createClient("host:8000") as Untyped;\ninterface Untyped { model(name: string): { inferSample(inputs: object): Promise<Outputs>; streamSample(inputs: object): AsyncIterable<Outputs> } }\ntype Outputs = Record<string, any>;';
  return `${head}\nconst use = (value: { shape: readonly number[] }) => void value;\n${calls.join("\n")}\n`;
}
for (const typed of [true, false])
  writeFileSync(join(folder, `${typed ? "typed" : "plain"}.mts`), programText(typed));

const OPTIONS =
  "--noEmit --strict --target ES2022 --module NodeNext --skipLibCheck --types node --ignoreConfig";

/** Processor time of the compiler in milliseconds, which other programs on the machine disturb less than the time on the wall. */
function compileMs(name) {
  const command = `TIMEFORMAT='%U %S'; time "${process.execPath}" "${tsc}" ${OPTIONS} "${join(folder, name)}"`;
  const { stdout, stderr } = spawnSync("bash", ["-c", command], { encoding: "utf8" });
  if (stdout !== "") throw new Error(stdout);
  const [user, system] = stderr.trim().split(" ").map(Number);
  return (user + system) * 1_000;
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** A client of the language server of TypeScript, over its standard input and output. */
class Editor {
  #process = spawn(process.execPath, [tsc, "--lsp", "--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
  #buffer = Buffer.alloc(0);
  #waiting = new Map();
  #id = 0;

  constructor() {
    this.#process.stdout.on("data", (chunk) => {
      this.#buffer = Buffer.concat([this.#buffer, chunk]);
      this.#read();
    });
  }

  #read() {
    for (;;) {
      const end = this.#buffer.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = Number(/Content-Length: (\d+)/i.exec(this.#buffer.toString("latin1", 0, end))[1]);
      if (this.#buffer.length < end + 4 + length) return;
      const message = JSON.parse(this.#buffer.toString("utf8", end + 4, end + 4 + length));
      this.#buffer = this.#buffer.subarray(end + 4 + length);
      if (message.method !== undefined && message.id !== undefined)
        this.#send({ id: message.id, result: null });
      else this.#waiting.get(message.id)?.(message);
    }
  }

  #send(message) {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message });
    this.#process.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }

  notify(method, params) {
    this.#send({ method, params });
  }

  async ask(method, params) {
    const id = ++this.#id;
    const answer = new Promise((resolve) => this.#waiting.set(id, resolve));
    this.#send({ id, method, params });
    const { result, error } = await answer;
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  end() {
    this.#process.kill();
  }
}

/** Milliseconds of completions at three places: the name of a model, its inputs, and an output. */
async function completionMs() {
  const path = join(folder, "edited.mts");
  const head =
    'import { createClient } from "@tritonjs/client/http";\nimport type { Models } from "./models.js";\nconst client = createClient<Models>("host:8000");\n';
  const places = [
    ['client.model("', "model-43"],
    ['await client.model("model-43").inferSample({ ', "image"],
    ['(await client.model("model-43").inferSample({ image: [] as never, third: [] as never })).', "scores"],
  ];
  const editor = new Editor();
  try {
    await editor.ask("initialize", {
      processId: process.pid,
      rootUri: pathToFileURL(folder).href,
      capabilities: {},
    });
    editor.notify("initialized", {});
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: {
          module: "NodeNext",
          target: "ES2022",
          strict: true,
          skipLibCheck: true,
          types: ["node"],
          noEmit: true,
        },
        include: ["*.mts", "*.d.ts"],
      }),
    );
    const uri = pathToFileURL(path).href;
    let version = 0;
    editor.notify("textDocument/didOpen", {
      textDocument: { uri, languageId: "typescript", version, text: head },
    });
    const times = [];
    for (let round = 0; round < ROUNDS; round++) {
      for (const [line, expected] of places) {
        editor.notify("textDocument/didChange", {
          textDocument: { uri, version: ++version },
          contentChanges: [{ text: `${head}// ${round}\n${line}` }],
        });
        const start = performance.now();
        const answer = await editor.ask("textDocument/completion", {
          textDocument: { uri },
          position: { line: 4, character: line.length },
        });
        times.push(performance.now() - start);
        const items = answer?.items ?? answer ?? [];
        if (!items.some(({ label }) => label.includes(expected)))
          throw new Error(`no completion '${expected}' after ${line}`);
      }
    }
    return {
      first: times[0],
      median: median(times.slice(places.length)),
      worst: Math.max(...times.slice(places.length)),
    };
  } finally {
    editor.end();
  }
}

try {
  compileMs("typed.mts");
  const rounds = Array.from({ length: ROUNDS }, () => ({
    typed: compileMs("typed.mts"),
    plain: compileMs("plain.mts"),
  }));
  const typed = median(rounds.map((round) => round.typed));
  const plain = median(rounds.map((round) => round.plain));
  const ratio = median(rounds.map((round) => round.typed / round.plain));
  console.log(
    `tsc of ${MODELS} models: ${typed.toFixed(0)} ms, without types ${plain.toFixed(0)} ms, ${ratio.toFixed(2)} times`,
  );
  const { first, median: usual, worst } = await completionMs();
  console.log(
    `completion: ${usual.toFixed(0)} ms (first ${first.toFixed(0)} ms, worst after it ${worst.toFixed(0)} ms)`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
