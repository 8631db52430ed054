import { cpSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { HOSTILE_TEMPLATE } from "../load/texts.mjs";
import { controlledFiles, DOUBLE, SUM, writeFiles } from "../repository/models.mjs";
import { HEAP_LIMITS, ServerProcess } from "./server-process.mjs";

/** As docs/operations.md says for programs whose workers restart. `serve` sets them itself. */
const MALLOC_LIMITS = {
  MALLOC_MMAP_THRESHOLD_: "4194304",
  MALLOC_TRIM_THRESHOLD_: "8388608",
  MALLOC_ARENA_MAX: String(Math.max(2, availableParallelism())),
};

const STORIES = fileURLToPath(new URL("../../examples/text-generation/models/stories/1", import.meta.url));
const PROGRAM = fileURLToPath(new URL("./bound-program.mjs", import.meta.url));

/** The program with bound models, whose files are in `folder`. */
export function startBoundServer({ folder, redis, seed, logFile, env, onInProcess }) {
  const controlled = controlledFiles();
  writeFiles(folder, {
    ...Object.fromEntries(
      Object.entries(controlled).map(([name, content]) => [`controlled/${name}`, content]),
    ),
    "modules/double.mjs": DOUBLE,
    "modules/sum.mjs": SUM,
    "modules/double.onnx": controlled["loaded_onnx/1/model.onnx"],
  });
  for (const name of ["stories", "hostile_template"])
    cpSync(STORIES, join(folder, "modules", name), { recursive: true });
  const template = join(folder, "modules", "hostile_template", "tokenizer_config.json");
  writeFileSync(template, JSON.stringify({ chat_template: HOSTILE_TEMPLATE }));
  const args = [...HEAP_LIMITS, "--expose-gc", PROGRAM, JSON.stringify({ folder, redis, seed })];
  const server = new BoundServer("program", args, {
    env: { ...env, ...MALLOC_LIMITS },
    services: 3,
    logFile,
    ipc: true,
  });
  server.onInProcess = onInProcess;
  return server;
}

class BoundServer extends ServerProcess {
  accessToken;
  onInProcess;
  #waiting = new Map();

  constructor(...args) {
    super(...args);
    this.child.on("message", (message) => {
      if (message.type === "token") this.accessToken = message.accessToken;
      else if (message.type === "ended") this.onInProcess(message);
      else this.#waiting.get(message.type)?.(message);
    });
  }

  /** Lets the program send requests in process. */
  startLoad() {
    this.child.send({ type: "load" });
  }

  /** Stops the requests in process. Resolves when the last one has ended. */
  async stopLoad() {
    await this.#ask("quiet");
  }

  /** Bytes of the heap after a collection. */
  async heapBytes() {
    return (await this.#ask("heap")).bytes;
  }

  #ask(type) {
    return new Promise((resolve, reject) => {
      this.#waiting.set(type, resolve);
      this.child.send({ type });
      this.ended.then(({ code, signal }) => reject(new Error(`program ended with ${signal ?? code}`)));
    });
  }
}
