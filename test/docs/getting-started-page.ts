import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { type CurlLine, curlLines } from "../support/curl-line.js";
import { irisModel } from "../support/iris.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { onFreePorts } from "./snippets.js";

/** The page that new users start from. */
export const page = readFileSync(join(repositoryRoot, "docs/getting-started.md"), "utf8").replaceAll(
  "\r\n",
  "\n",
);

/** Programs of the page by file name. */
const programs = new Map(
  [...page.matchAll(/^```js\n\/\/ (\S+\.mjs)\n(.*?)^```$/gms)].map(([, name, code]) => [name!, code!]),
);

/** What a program prints according to the page: the block after the command that starts it. */
function promisedBy(name: string): string | undefined {
  return new RegExp(`^\`\`\`sh\nnode ${name}\n\`\`\`.*?^\`\`\`text\n(.*?)^\`\`\`$`, "ms").exec(page)?.[1];
}

const portsOf = (text: string) => [...text.matchAll(/localhost:(\d+)/g)].map(([, port]) => port!);

/** Programs that the page runs, in its order, by what they do. */
const started = [...programs.keys()].filter((name) => page.includes(`\`\`\`sh\nnode ${name}\n`));
const servers = started.filter((name) => portsOf(promisedBy(name) ?? "").length > 0);
const clients = started.filter((name) => !servers.includes(name) && /localhost:\d/.test(programs.get(name)!));
const scripts = started.filter((name) => !servers.includes(name) && !clients.includes(name));

export const PROGRAMS = { all: programs, scripts, servers, clients };

/** The project of a reader of the page, in a folder where its packages are found. */
export class ReadersProject {
  /** @param node the Node that runs the programs */
  constructor(
    readonly folder: string,
    readonly node: string,
  ) {
    mkdirSync(folder, { recursive: true });
    copyFileSync(irisModel, join(folder, "iris.onnx"));
    for (const [name, code] of programs) this.write(name, code);
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.folder, file), onFreePorts(text));
  }

  /** Expects that a program ends, and prints what the page promises. */
  async expectOutput(name: string): Promise<void> {
    const { code, stdout, stderr } = await this.#start(name).ended;
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: promisedBy(name), stderr: "" });
  }

  /**
   * Expects that a server prints its addresses, answers the page's curl lines for its ports, and ends on SIGTERM. The
   * clients of the page for these ports run against it.
   */
  async expectServer(name: string): Promise<void> {
    const server = this.#start(name);
    try {
      const promised = promisedBy(name)!;
      const printed = await server.untilOutput(
        promised
          .trimEnd()
          .split("\n")
          .at(-1)!
          .replace(/\d+.*$/s, ""),
      );
      const actual = portsOf(printed);
      const ports = new Map(portsOf(promised).map((port, i) => [port, actual[i]!]));
      expect(printed).toBe(promised.replace(/localhost:(\d+)/g, (_, port) => `localhost:${ports.get(port)}`));
      await expectAnswers(
        curlLines(page).filter(({ port }) => ports.has(port)),
        ports,
      );
      for (const client of clients) await this.#expectClient(client, ports);
      if (process.platform === "win32") return;
      server.signal("SIGTERM");
      const { code, stderr } = await server.ended;
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    } finally {
      server.signal("SIGKILL");
    }
  }

  #start(name: string): Program {
    return new Program(this.node, [name], { cwd: this.folder, env: { PORT: "0" } });
  }

  async #expectClient(name: string, ports: ReadonlyMap<string, string>): Promise<void> {
    const code = programs.get(name)!;
    if (!portsOf(code).every((port) => ports.has(port))) return;
    this.write(
      name,
      code.replace(/localhost:(\d+)/g, (_, port) => `localhost:${ports.get(port)}`),
    );
    await this.expectOutput(name);
  }
}

async function expectAnswers(lines: readonly CurlLine[], ports: ReadonlyMap<string, string>): Promise<void> {
  expect(lines.length).toBeGreaterThan(1);
  for (const { line, port, path, init, status, text } of lines) {
    const answer = await fetch(`http://localhost:${ports.get(port)}${path}`, init);
    expect([line, answer.status, await answer.text()]).toEqual([line, status, expect.stringContaining(text)]);
  }
}
