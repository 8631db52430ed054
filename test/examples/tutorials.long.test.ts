import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { tutorialRows } from "../docs/tutorials-table.js";
import { exampleFolder, promisedOutput, promisedSection } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { hasPython, patientPythonOption, withoutPython } from "../support/python.js";
import { repositoryRoot } from "../support/repository.js";

/** Programs and examples that run models of Python. */
const NEEDS_PYTHON = ["faces", "speech-recognition"];

const commands = tutorialRows().flatMap(({ number, program, commands }) =>
  commands.map(({ example, args }) => ({ number, program, example, args })),
);

/** Places of the words in pictures/text.png: left, top, right, bottom. */
const WORDS = [
  [24, 24, 111, 45],
  [60, 72, 130, 86],
  [16, 116, 85, 137],
] as const;

describe("the programs of tutorials", () => {
  it("program 7 finds each word of the picture, and nothing else", async () => {
    const main = join(exampleFolder("tutorials"), "dist", "main.js");
    const { stdout } = await Program.node(main, ["text-detection"], repositoryRoot).ended;
    const boxes = [...stdout.matchAll(/text from \((\d+), (\d+)\) to \((\d+), (\d+)\)/g)].map((found) =>
      found.slice(1).map(Number),
    );
    expect(boxes).toHaveLength(WORDS.length);
    for (const [i, word] of WORDS.entries()) {
      for (const [side, place] of word.entries()) {
        expect(Math.abs(boxes[i]![side]! - place), `side ${side} of word ${i}`).toBeLessThan(20);
      }
    }
  });
});

describe.each(commands)(
  "program $number of docs/tutorials.md, examples/$example $args",
  ({ example, args }) => {
    const runs = hasPython || ![example, ...args].some((name) => NEEDS_PYTHON.includes(name));

    it.runIf(runs)(`answers as the tutorial says${runs ? "" : withoutPython}`, async () => {
      const main = join(exampleFolder(example), "dist", "main.js");
      const program = Program.node(main, args, repositoryRoot);
      onTestFinished(() => program.signal("SIGKILL"));
      const { code, stdout, stderr } = await program.ended;
      expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(
        args.length === 0 ? promisedOutput(example) : promisedSection(example, args[0]!),
      );
    });
  },
);

describe("tritonjs serve of the tutorials' repository", () => {
  it("has all of its models ready, on a machine without a GPU", async () => {
    const folder = exampleFolder("tutorials");
    const command = join(repositoryRoot, "packages/cli/dist/main.js");
    const options = [
      `--model-repository=${join(folder, "models")}`,
      `--substitute=${join(folder, "substitutes.json")}`,
      "--gpu-fallback=cpu",
      patientPythonOption,
      "--http-address=127.0.0.1 --http-port=0 --allow-grpc=false --allow-metrics=false".split(" "),
    ].flat();
    const server = Program.node(command, ["serve", ...options], repositoryRoot);
    onTestFinished(() => server.signal("SIGKILL"));
    const log = await server.untilOutput("Started HTTPService at", "stderr");
    const [, address] = /Started HTTPService at ([\d.]+:\d+)/.exec(log)!;
    const index = await fetch(`http://${address}/v2/repository/index`, { method: "POST" });
    const rows = (await index.json()) as { name: string; state: string }[];
    const models = readdirSync(join(folder, "models"));
    expect(rows.map(({ name, state }) => `${name} ${state}`).sort()).toEqual(
      models.map((name) => `${name} READY`).sort(),
    );
    const config = await fetch(`http://${address}/v2/models/encoder/config`);
    expect(await config.json()).toMatchObject({ instance_group: [{ kind: "KIND_CPU", count: 2 }] });
    server.signal("SIGTERM");
    expect((await server.ended).code).toBe(0);
  });
});

const tutorial = "examples/tutorials/classes";

describe("the tutorial about classes", () => {
  it.skipIf(!hasPython)(
    `classes of JavaScript, Seldon and MLServer answer what the tutorial shows${withoutPython}`,
    async () => {
      const text = await readFile(join(repositoryRoot, tutorial, "README.md"), "utf8");
      const models = [...text.matchAll(/--model (\S+)/g)].map(([, model]) => `--model=${model}`);
      const requests = [...text.matchAll(/localhost:8000(\S+) \\\n {2}-d '(.*)'/g)].map(
        ([, path, body]) => [path!, body!] as const,
      );
      const [, answers = ""] = /^```text\n(.*?)\n```$/ms.exec(text) ?? [];
      expect([models.length, requests.length]).toEqual([3, 3]);

      const command = join(repositoryRoot, "packages/cli/dist/main.js");
      const network = "--http-address=127.0.0.1 --http-port=0 --allow-grpc=false --allow-metrics=false".split(
        " ",
      );
      const server = Program.node(command, ["serve", ...models, ...network], repositoryRoot);
      onTestFinished(() => server.signal("SIGKILL"));
      const log = await server.untilOutput("Started HTTPService at", "stderr");
      const [, address] = /Started HTTPService at ([\d.]+:\d+)/.exec(log)!;
      const got: string[] = [];
      for (const [path, body] of requests) {
        const answer = await fetch(`http://${address}${path}`, { method: "POST", body });
        got.push(await answer.text());
      }
      expect(got.join("\n")).toBe(answers);
      server.signal("SIGTERM");
      expect((await server.ended).code).toBe(0);
    },
  );
});

describe("the tutorial about online learning", () => {
  const tutorial = join(repositoryRoot, "examples/tutorials/online-learning");

  it("a model learns over HTTP while clients ask it, and no request is lost", async () => {
    const server = Program.node(join(tutorial, "server.mjs"), ["--port=0"], repositoryRoot);
    onTestFinished(() => server.signal("SIGKILL"));
    const [, url] = /at (http:\S+)\n/.exec(await server.untilOutput("\n"))!;
    const client = Program.node(
      join(tutorial, "client.mjs"),
      [`--url=${url}`, "--batches=60"],
      repositoryRoot,
    );
    onTestFinished(() => client.signal("SIGKILL"));
    const { code, stdout, stderr } = await client.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const [before, after] = /accuracy ([\d.]+) before, ([\d.]+) after/.exec(stdout)!.slice(1).map(Number);
    expect(before).toBeLessThan(0.3);
    expect(after).toBeGreaterThan(0.8);
    const [answered, sent, versions] = /(\d+) of (\d+) requests .* by (\d+) versions/
      .exec(stdout)!
      .slice(1)
      .map(Number);
    expect(answered).toBe(sent);
    expect(answered).toBeGreaterThan(40);
    expect(versions).toBeGreaterThan(20);
    server.signal("SIGTERM");
    expect((await server.ended).code).toBe(0);
  }, 240_000);
});
