import { existsSync } from "node:fs";
import { readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { freePorts } from "../support/free-ports.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import {
  ask,
  clientOf,
  command,
  DOUBLE,
  IN_A_PROCESS,
  javascript,
  repositoryWith,
  serveArguments,
  startServer,
} from "./served-repository.js";

/** Linux's file that is always full. */
const FULL = "/dev/full";
const note = existsSync(FULL) ? "" : ` (skipped: there is no ${FULL})`;

const models = () =>
  repositoryWith({
    "double/config.pbtxt": javascript(IN_A_PROCESS),
    "double/1/model.js": DOUBLE,
  });

describe.skipIf(!existsSync(FULL))(`a server on a full disk${note}`, () => {
  it("answers while its log file cannot be written", async () => {
    const [port] = await freePorts(1);
    const client = await startOn(port!, await models(), "", `--log-file=${FULL}`, "--log-verbose=1");
    await expect(ask(client, "double", -1)).rejects.toThrow("exited with code 70");
    expect(await ask(client, "double", 2)).toBe(4);
  });

  it("answers while standard error cannot be written, and restarts instances that die", async () => {
    const [port] = await freePorts(1);
    const client = await startOn(port!, await models(), `2> ${FULL}`, "--log-verbose=1");
    await expect(ask(client, "double", -1)).rejects.toThrow("exited with code 70");
    expect(await ask(client, "double", 3)).toBe(6);
  });

  it("answers while a trace file cannot be written, and writes the next one", async () => {
    const folder = await repositoryWith({});
    const file = join(folder, "trace.json");
    await symlink(FULL, `${file}.0`);
    const tracing = ["level=TIMESTAMPS", "rate=1", "triton,log-frequency=1", `triton,file=${file}`];
    const settings = tracing.map((setting) => `--trace-config=${setting}`);
    const { client, program } = await startServer(await models(), ...settings);
    expect(await ask(client, "double", 1)).toBe(2);
    await program.untilOutput("failed creating trace file", "stderr");
    expect(await ask(client, "double", 2)).toBe(4);
    await expect.poll(() => readFile(`${file}.1`, "utf8").catch(() => "")).toContain("REQUEST_START");
  });
});

it("a server answers after the reader of its standard error is gone", async () => {
  const { client, program } = await startServer(await models(), "--log-verbose=1");
  program.closeOutput("stderr");
  for (let i = 0; i < 5; i++) expect(await ask(client, "double", i)).toBe(2 * i);
  program.signal("SIGTERM");
  expect((await program.ended).code).toBe(0);
});

it("a model in a process answers after the reader of its output is gone", async () => {
  const fixture = (name: string) =>
    new URL(`../../packages/core/test/behaviours/fixtures/${name}.mjs`, import.meta.url);
  const args = ["flood", fixture("floods-stdout").href];
  const program = Program.node(fileURLToPath(fixture("serves-in-a-process")), args, repositoryRoot);
  program.closeOutput("stdout");
  const { code, stderr } = await program.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "answered 5\n" });
});

/** Starts a server through a shell, with a redirection of its output. Resolves when it is ready. */
async function startOn(port: number, path: string, redirection: string, ...more: readonly string[]) {
  const args = [...serveArguments(path, ...more, `--http-port=${port}`), "--allow-grpc=false"];
  const script = `exec "$0" "$@" ${redirection}`;
  const program = new Program("sh", ["-c", script, process.execPath, command, ...args], {
    cwd: repositoryRoot,
    detached: true,
  });
  onTestFinished(async () => {
    program.signalGroup("SIGKILL");
    await program.ended;
  });
  const client = clientOf(`127.0.0.1:${port}`);
  const ended = program.ended.then(({ code, stderr }) => {
    throw new Error(`the server ended with ${code}: ${stderr}`);
  });
  ended.catch(() => {});
  const isReady = () => client.isServerReady().catch(() => false);
  await Promise.race([ended, expect.poll(isReady).toBe(true)]);
  return client;
}
