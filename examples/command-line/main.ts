import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/*
 * The commands that write a repository of models, check one, write its types, add a trained model, serve it and complete command lines, as
 * programs of their own.
 *
 *   npm start
 */

const example = fileURLToPath(new URL("..", import.meta.url));
const command = fileURLToPath(new URL("./main.js", import.meta.resolve("@tritonjs/cli")));

/** Starts `tritonjs` in a folder. */
function tritonjs(args: readonly string[], cwd = example): ChildProcess {
  console.log(`> tritonjs ${args.join(" ")}`);
  return spawn(process.execPath, [command, ...args], { cwd, stdio: ["ignore", "inherit", "pipe"] });
}

const folder = await mkdtemp(join(tmpdir(), "command-line-"));
await once(tritonjs(["init", "models"], folder), "exit");
await rm(folder, { recursive: true });

const [checked] = await once(tritonjs(["config", "check", "models"]), "exit");
console.log(`exit code ${checked}`);

await once(tritonjs(["types", "models"]), "exit");

await once(tritonjs(["repo", "add", "../tree-ensemble/model/fraud.json", "--dry-run"]), "exit");

interface LogLine {
  readonly level: string;
  readonly message: string;
  /** Name of the model that the line is about. */
  readonly model?: string;
  readonly state?: string;
}

/** Prints the states of the models from the log of a server, and returns the URL of HTTP once it is ready. */
async function urlOf(server: ChildProcess): Promise<string> {
  for await (const text of createInterface({ input: server.stderr! })) {
    const { level, message, model, state } = JSON.parse(text) as LogLine;
    if (state !== undefined) console.log(`${level} of model ${model}: ${message}`);
    const [, address] = /Started HTTPService at ([\d.]+:\d+)/.exec(message) ?? [];
    if (address !== undefined) return `http://${address}`;
  }
  throw new Error("the server has ended");
}

const network = "--http-address=127.0.0.1 --http-port=0 --allow-grpc=false --allow-metrics=false";
const server = tritonjs(["serve", "--model-repository=models", "--log-format=json", ...network.split(" ")]);
const ended = once(server, "exit");
const url = await urlOf(server);
server.stderr!.resume();
const answer = await fetch(`${url}/v2/models/shout/generate`, { method: "POST", body: '{"text":"hello"}' });
console.log(await answer.text());
server.kill("SIGTERM");
await ended;
console.log("the server has ended");

/** What bash proposes when the tabulator key ends a line, with the script of `tritonjs completion bash`. */
function proposals(line: string): string {
  const { stdout: script } = spawnSync(process.execPath, [command, "completion", "bash"], {
    encoding: "utf8",
  });
  const press = `COMP_LINE='${line}' COMP_POINT=${line.length}; _tritonjs; echo "\${COMPREPLY[@]}"`;
  const { error, stdout } = spawnSync("bash", ["-c", `${script}\n${press}`], { encoding: "utf8" });
  return error === undefined ? stdout.trim() : "bash is not installed: it would propose --log-format=";
}
console.log(`tritonjs serve --log-fo<tab>: ${proposals("tritonjs serve --log-fo")}`);
console.log(`tritonjs serve --log-format <tab>: ${proposals("tritonjs serve --log-format ")}`);
