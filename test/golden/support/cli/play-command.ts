import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { readArguments, run } from "@tritonjs/cli";
import { exchange } from "../http/exchange.js";
import { compareAnswer } from "../lifecycle/compare-answer.js";
import { RepositoryFolder } from "../repository-folder.js";
import {
  type CommandCase,
  commandLine,
  defaultRepository,
  onFreePorts,
  type Probe,
  RECORDED_PORTS,
} from "./command-case.js";
import { areLines, comparableOutput, expectedOutput, type Mask } from "./command-output.js";
import { RecordedTerminal } from "./recorded-terminal.js";

/** Runs a command line and returns its differences from the expected outcome. */
export async function playCommand(recorded: CommandCase): Promise<string[]> {
  if (recorded.options !== undefined) return playHelp(recorded);
  const folder = await RepositoryFolder.create(recorded.repository ?? defaultRepository);
  try {
    if (recorded.before !== undefined) return await playOnTakenPort(recorded, folder.path);
    const args = commandLine(recorded, folder.path);
    const mask: Mask = (text) => text.replaceAll(folder.path, "<REPO>");
    if (recorded.outcome === "exited") return await playToTheEnd(recorded, args, mask);
    return opensOtherPort(recorded) ? playParsing(recorded, args) : await playServing(recorded, args, mask);
  } finally {
    await folder.remove();
  }
}

async function playHelp({ options = [], exit_code }: CommandCase): Promise<string[]> {
  const terminal = new RecordedTerminal();
  const code = await run(["serve", "--help"], terminal);
  const missing = options.filter((option) => !terminal.output.includes(option));
  return [
    ...missing.map((option) => `the help lacks ${option}`),
    ...(code === exit_code ? [] : [`expected exit code ${exit_code}, got ${code}`]),
  ];
}

/** A command line that ends by itself; any other is stopped once it serves. */
async function playToTheEnd(recorded: CommandCase, args: readonly string[], mask: Mask): Promise<string[]> {
  const terminal = new RecordedTerminal();
  const ended = run(["serve", ...(isRefused(args) ? args : onFreePorts(args))], terminal);
  void terminal.untilOutput("Started ").then(() => terminal.stop());
  const code = await ended;
  return [
    ...(code === recorded.exit_code ? [] : [`expected exit code ${recorded.exit_code}, got ${code}`]),
    ...compareOutput(recorded, terminal, mask),
  ];
}

/** True for a command line that is rejected before any port is opened: its ports can stay as they are. */
function isRefused(args: readonly string[]): boolean {
  try {
    readArguments(args, {});
    return false;
  } catch {
    return true;
  }
}

/** True for a case with a port of its own, which may be taken on this machine or be forbidden. */
function opensOtherPort({ args }: CommandCase): boolean {
  return args.some((arg) => /^--(?:http|grpc|metrics)-por/.test(arg) && !/=(?:913[012]|0)$/.test(arg));
}

/** The port that is read is the one in the recorded server's log. */
function playParsing({ output = [] }: CommandCase, args: readonly string[]): string[] {
  if (isRefused(args)) return ["is refused"];
  const { values } = readArguments(args, {});
  const started = output.find((line) => line.includes("HTTPService"));
  const expected = /:(-?\d+)"/.exec(started ?? "")?.[1];
  return expected === `${values["http-port"]}`
    ? []
    : [`expected port ${expected}, got ${values["http-port"]}`];
}

async function playServing(recorded: CommandCase, args: readonly string[], mask: Mask): Promise<string[]> {
  const terminal = new RecordedTerminal();
  let ended = false;
  const running = run(["serve", ...onFreePorts(args)], terminal).finally(() => {
    ended = true;
  });
  const last = args.includes("--allow-metrics=false") ? "Started HTTPService" : "Started Metrics Service";
  await Promise.race([running, terminal.untilOutput(last)]);
  if (ended) return [`ended with ${await running}: ${terminal.errors}`];
  const differences: string[] = [];
  for (const probe of recorded.probes ?? []) differences.push(...(await ask(probe, terminal)));
  terminal.stop();
  const code = await running;
  if (code !== recorded.exit_code_after_sigterm) {
    differences.push(`expected exit code ${recorded.exit_code_after_sigterm}, got ${code}`);
  }
  differences.push(...compareOutput(recorded, terminal, (text) => recordedPorts(mask(text), recorded)));
  const isIso = recorded.output_shape?.[0]?.startsWith("9999-99-99T") ?? false;
  if (isIso && !/^\d{4}-\d\d-\d\dT[\d:]{8}Z I \d+ /.test(terminal.errors)) {
    differences.push(`expected lines in ISO8601, got ${terminal.errors}`);
  }
  return differences;
}

function compareOutput(recorded: CommandCase, terminal: RecordedTerminal, mask: Mask): string[] {
  const expected = expectedOutput(recorded);
  const got = comparableOutput(recorded, terminal.errors, mask);
  // One recording keeps only the shape of the lines.
  return areLines(expected, got) || recorded.output_shape !== undefined
    ? []
    : [`expected ${expected.join("\n")}`, `got ${got.join("\n")}`];
}

async function ask(probe: Probe, terminal: RecordedTerminal): Promise<string[]> {
  const [, host, port] = /Started HTTPService at ([\d.]+):(\d+)/.exec(terminal.errors)!;
  const [method = "", path = ""] = probe.call.split(" ");
  const answer = await exchange({ host: host!, port: Number(port) }, { method, path, headers: {} });
  if (answer === undefined) return [`no answer to ${probe.call}`];
  const text = answer.body.toString("utf8");
  const body: unknown = text === "" ? "" : JSON.parse(text);
  if (path !== "/v2" || answer.status !== 200) return compareAnswer(probe, { status: answer.status, body });
  // Version and extensions are compared where HTTP is.
  const name = (value: unknown) => (value as { name: string }).name;
  return name(body) === name(probe.response)
    ? []
    : [`expected the name ${name(probe.response)}, got ${name(body)}`];
}

/** Options of the ports by the names of their services in the log. */
const PORT_OPTIONS: Readonly<Record<string, string>> = {
  GRPCInferenceService: "grpc-port",
  HTTPService: "http-port",
  "Metrics Service": "metrics-port",
};

/** Any free port that was found stands for the recorded one. */
function recordedPorts(text: string, { args }: CommandCase): string {
  return text.replaceAll(/Started (.*) at ([\d.]+):\d+/g, (_, service: string, host: string) => {
    const option = PORT_OPTIONS[service]!;
    const port = args.includes(`--${option}=0`) ? "0" : RECORDED_PORTS[option];
    return `Started ${service} at ${host}:${port}`;
  });
}

async function playOnTakenPort(recorded: CommandCase, repository: string): Promise<string[]> {
  const option = Object.values(PORT_OPTIONS).find((name) => recorded.id.endsWith(`${name}-in-use`))!;
  const taken = RECORDED_PORTS[option]!;
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  try {
    const { port } = server.address() as AddressInfo;
    const args = commandLine(recorded, repository).map((arg) => arg.replace(taken, `${port}`));
    return await playToTheEnd(recorded, args, (text) => text.replaceAll(`:${port}'`, `:${taken}'`));
  } finally {
    server.close();
  }
}
