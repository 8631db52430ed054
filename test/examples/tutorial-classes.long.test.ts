import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Program } from "../support/program.js";
import { hasPython, withoutPython } from "../support/python.js";
import { repositoryRoot } from "../support/repository.js";

const tutorial = "examples/tutorials/classes";

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
