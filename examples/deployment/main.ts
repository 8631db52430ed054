import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

/*
 * Runs what deploy/Dockerfile and deploy/tritonjs.service run, without Docker and systemd: their commands, variables,
 * health check and signals. A folder stands for the root of the machine.
 *
 *   npm start
 *   npm run image    builds the image (needs Docker and a network)
 */

const deploy = fileURLToPath(new URL("../../../deploy/", import.meta.url));
const dockerfile = await readFile(join(deploy, "Dockerfile"), "utf8");
const unit = await readFile(join(deploy, "tritonjs.service"), "utf8");

// The command as npm installs it: an executable program with a link to it.
const root = await mkdtemp(join(tmpdir(), "root-"));
const commands = join(root, "app", "node_modules", ".bin");
await mkdir(commands, { recursive: true });
const program = fileURLToPath(new URL("./main.js", import.meta.resolve("@tritonjs/cli")));
await chmod(program, 0o755);
await symlink(program, join(commands, "tritonjs"));
for (const models of ["models", "var/lib/tritonjs/models"]) {
  const { status } = spawnSync(process.execPath, [program, "init", join(root, models)]);
  if (status !== 0) throw new Error(`tritonjs init of ${models} failed: expected exit code 0, got ${status}`);
}

/** The value of the last line of a Dockerfile or a unit that begins with a word. */
function directive(text: string, name: string): string {
  return directives(text, name).at(-1) ?? "";
}

function directives(text: string, name: string): string[] {
  const lines = text.replaceAll("\\\n", "").matchAll(new RegExp(`^${name}(?:=| +)(.*)$`, "gm"));
  return [...lines].map(([, value]) => value!);
}

/** Moves an absolute path of the image or of the unit below the folder. */
function belowRoot(text: string): string {
  return text.replace(/(?<=^|=)\/(?=app\/|models|var\/)/, `${root}/`);
}

interface Service {
  readonly command: readonly string[];
  /** Lines of `NAME=value` with spaces between them. */
  readonly variables: readonly string[];
  readonly stopSignal: string;
  readonly healthCheck?: readonly string[];
}

/** Starts a service, sends a request, and stops it. */
async function tryOut({ command, variables, stopSignal, healthCheck }: Service): Promise<void> {
  console.log(`> ${command.join(" ")}`);
  const env = {
    ...Object.fromEntries(variables.flatMap((line) => line.split(" ")).map((one) => one.split("="))),
    PATH: [commands, dirname(process.execPath), process.env.PATH].join(delimiter),
    // Free ports, as `docker run --env` or /etc/tritonjs/tritonjs.env sets them.
    TRITONJS_HTTP_PORT: "0",
    TRITONJS_GRPC_PORT: "0",
    TRITONJS_METRICS_PORT: "0",
  };
  const [file, ...args] = command.map(belowRoot);
  const server = spawn(file!, args, { env, cwd: root, stdio: ["ignore", "inherit", "pipe"] });
  // A fault of this program ends the service too.
  process.once("exit", () => server.kill());
  const ended = once(server, "exit");
  const port = await portOf(server.stderr);
  const answer = await fetch(`http://127.0.0.1:${port}/v2/models/classifier/infer`, {
    method: "POST",
    body: '{"inputs":[{"name":"features","datatype":"FP32","shape":[1,4],"data":[5,3,1,0]}]}',
  });
  console.log(`inference: ${answer.status}`);
  if (healthCheck !== undefined) {
    const [node, ...check] = healthCheck.map((text) => text.replace("127.0.0.1:8000", `127.0.0.1:${port}`));
    console.log(`health check: exit code ${spawnSync(node!, check, { env }).status}`);
  }
  server.kill(stopSignal as NodeJS.Signals);
  const [code] = await ended;
  console.log(`${stopSignal}: exit code ${code}`);
}

/** The port of HTTP from the log of a server, once it is ready. */
async function portOf(stderr: Readable): Promise<string> {
  let log = "";
  for await (const part of stderr.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    log += part;
    const [, port] = /Started HTTPService at [\d.]+:(\d+)/.exec(log) ?? [];
    if (port !== undefined) {
      stderr.resume();
      return port;
    }
  }
  throw new Error(`the server has ended: ${log}`);
}

await tryOut({
  command: ["ENTRYPOINT", "CMD"].flatMap((name) => JSON.parse(directive(dockerfile, name)) as string[]),
  variables: directives(dockerfile, "ENV"),
  stopSignal: directive(dockerfile, "STOPSIGNAL"),
  healthCheck: JSON.parse(directive(dockerfile, "HEALTHCHECK").replace(/^.* CMD /, "")) as string[],
});
await tryOut({
  command: directive(unit, "ExecStart").split(" "),
  variables: directives(unit, "Environment"),
  stopSignal: directive(unit, "KillSignal"),
});
const verified = spawnSync("systemd-analyze", ["verify", join(deploy, "tritonjs.service")]);
console.log(
  verified.error === undefined
    ? `systemd-analyze verify: exit code ${verified.status}`
    : "systemd-analyze is not installed: it would check the unit",
);
await rm(root, { recursive: true });
