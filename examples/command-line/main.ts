import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/*
 * The commands that check a directory of models, write its types and serve it, as programs of their own.
 *
 *   npm start
 */

/** Starts `tritonjs` in the folder of the example. */
function tritonjs(...args: string[]): ChildProcess {
  console.log(`> tritonjs ${args.join(" ")}`);
  const command = fileURLToPath(new URL("./main.js", import.meta.resolve("@tritonjs/cli")));
  return spawn(process.execPath, [command, ...args], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    stdio: ["ignore", "inherit", "pipe"],
  });
}

/** The URL of HTTP from the log of a server, once it is ready. */
async function urlOf(server: ChildProcess): Promise<string> {
  let log = "";
  for await (const part of server.stderr!.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    log += part;
    const [, address] = /Started HTTPService at ([\d.]+:\d+)/.exec(log) ?? [];
    if (address !== undefined) return `http://${address}`;
  }
  throw new Error(`the server has ended: ${log}`);
}

const [checked] = await once(tritonjs("config", "check", "models"), "exit");
console.log(`exit code ${checked}`);

await once(tritonjs("types", "models"), "exit");

const server = tritonjs(
  ..."serve --model-repository=models --http-address=127.0.0.1 --http-port=0".split(" "),
  ..."--allow-grpc=false --allow-metrics=false".split(" "),
);
const url = await urlOf(server);
const ended = once(server, "exit");
server.stderr!.resume();
const answer = await fetch(`${url}/v2/models/shout/generate`, { method: "POST", body: '{"text":"hello"}' });
console.log(await answer.text());
server.kill("SIGTERM");
await ended;
console.log("the server has ended");
