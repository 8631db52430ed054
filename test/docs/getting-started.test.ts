import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type CurlLine, curlLines } from "../support/curl-line.js";
import { irisModel } from "../support/iris.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { onFreePorts } from "./snippets.js";

const page = readFileSync(join(repositoryRoot, "docs/getting-started.md"), "utf8").replaceAll("\r\n", "\n");

/** The project of a reader, where the packages of the page are found: the frameworks are in the example's. */
const folder = join(
  repositoryRoot,
  "examples/mount-fetch/node_modules/.cache",
  `getting-started-${process.pid}`,
);

/** Programs of the page by file name. */
const programs = new Map(
  [...page.matchAll(/^```js\n\/\/ (\S+\.mjs)\n(.*?)^```$/gms)].map(([, name, code]) => [name!, code!]),
);

/** What a program prints according to the page: the block after the command that starts it. */
function promisedBy(name: string): string {
  const [, output] =
    new RegExp(`^\`\`\`sh\nnode ${name}\n\`\`\`.*?^\`\`\`text\n(.*?)^\`\`\`$`, "ms").exec(page) ?? [];
  return output ?? expect.fail(`the page does not say what ${name} prints`);
}

const start = (name: string) => new Program(process.execPath, [name], { cwd: folder, env: { PORT: "0" } });

/** Starts a server of the page. Resolves with its output, and with its ports by those of the page. */
async function startServer(name: string, lastLine: string) {
  const program = start(name);
  onTestFinished(() => program.signal("SIGKILL"));
  const printed = await program.untilOutput(lastLine);
  const portsOf = (text: string) => [...text.matchAll(/localhost:(\d+)/g)].map(([, port]) => port!);
  const promised = promisedBy(name);
  const actual = portsOf(printed);
  const ports = new Map(portsOf(promised).map((port, i) => [port, actual[i]!]));
  const expected = promised.replace(/localhost:(\d+)/g, (_, port) => `localhost:${ports.get(port)}`);
  expect(printed).toBe(expected);
  return { program, ports };
}

async function expectAnswers(lines: readonly CurlLine[], ports: ReadonlyMap<string, string>): Promise<void> {
  expect(lines.length).toBeGreaterThan(1);
  for (const { line, port, path, init, status, text } of lines) {
    const answer = await fetch(`http://localhost:${ports.get(port)}${path}`, init);
    expect([line, answer.status, await answer.text()]).toEqual([line, status, expect.stringContaining(text)]);
  }
}

/** The curl lines of the page for some ports. */
const linesFor = (ports: ReadonlyMap<string, string>) =>
  curlLines(page).filter(({ port }) => ports.has(port));

async function expectEndOnSignal(program: Program): Promise<void> {
  if (process.platform === "win32") return;
  program.signal("SIGTERM");
  const { code, stderr } = await program.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
}

describe("the page that new users start from", () => {
  beforeAll(() => {
    mkdirSync(folder, { recursive: true });
    copyFileSync(irisModel, join(folder, "iris.onnx"));
    for (const [name, code] of programs) writeFileSync(join(folder, name), onFreePorts(code));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each(["first", "batches", "flowers", "checks", "stream", "ensemble", "watch"])(
    "has a program %s.mjs that prints what the page promises",
    async (name) => {
      const file = `${name}.mjs`;
      const { code, stdout, stderr } = await start(file).ended;
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: promisedBy(file), stderr: "" });
    },
  );

  it.each(["fastify.mjs", "express.mjs", "hono.mjs"])(
    "has an application %s that answers as the page promises, and drains on SIGTERM",
    async (name) => {
      const { program, ports } = await startServer(name, "listening at ");
      await expectAnswers(linesFor(ports), ports);
      await expectEndOnSignal(program);
    },
  );

  it("has a server and a client of gRPC that answer as the page promises", async () => {
    const { program, ports } = await startServer("serve.mjs", "/metrics");
    await expectAnswers(linesFor(ports), ports);
    const client = programs.get("client.mjs")!.replace("localhost:8001", `localhost:${ports.get("8001")}`);
    writeFileSync(join(folder, "client.mjs"), client);
    const { code, stdout } = await start("client.mjs").ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: promisedBy("client.mjs") });
    await expectEndOnSignal(program);
  });

  it("has a test of each of its programs", () => {
    const tested = [
      ...["first", "batches", "models", "flowers", "checks", "fastify", "express", "hono"],
      ...["serve", "client", "stream", "ensemble", "watch"],
    ];
    expect([...programs.keys()]).toEqual(tested.map((name) => `${name}.mjs`));
  });

  it("quotes the examples of Nest and Next.js as they are", () => {
    const quotes = [...page.matchAll(/^```typescript\n\/\/ (\S+)\n(.*?)^```$/gms)];
    expect(quotes.length).toBeGreaterThan(4);
    for (const [, file, code] of quotes) {
      expect(readFileSync(join(repositoryRoot, file!), "utf8")).toContain(code);
    }
  });
});
