import { setTimeout as sleep } from "node:timers/promises";
import { run } from "@tritonjs/cli";
import { type Address, exchange } from "../http/exchange.js";
import { compareAnswer } from "../lifecycle/compare-answer.js";
import { compareIndex } from "../lifecycle/compare-index.js";
import { pythonOfScenarios } from "../lifecycle/python-code.js";
import type { CallStep, IndexRow, LifecycleStep, Scenario } from "../lifecycle/scenario.js";
import { playedPython } from "../played-python.js";
import { RepositoryFolder } from "../repository-folder.js";
import { RecordedTerminal } from "./recorded-terminal.js";

/** Plays a scenario that ends with a signal, through the command, and returns its differences. */
export async function playShutdown(scenario: Scenario): Promise<string[]> {
  const folder = await RepositoryFolder.create(scenario.repository);
  const terminal = new RecordedTerminal();
  const executing = new Signal();
  const free = ["--http-port=0", "--allow-grpc=false", "--allow-metrics=false", "--http-address=127.0.0.1"];
  const args = ["serve", `--model-repository=${folder.path}`, ...free, ...scenario.flags];
  const passTime = (ms: number) => {
    executing.give();
    return sleep(ms);
  };
  const running = run(args, terminal, { backends: { python: playedPython(pythonOfScenarios, passTime) } });
  try {
    await terminal.untilOutput("Started HTTPService");
    const [, host, port] = /Started HTTPService at ([\d.]+):(\d+)/.exec(terminal.errors)!;
    const player = new ShutdownPlayer({ host: host!, port: Number(port) }, terminal, executing);
    for (const step of scenario.steps) await player.play(step);
    const code = await running;
    await player.join();
    if (code !== scenario.exit_code) {
      player.differences.push(`expected exit code ${scenario.exit_code}, got ${code}`);
    }
    return player.differences;
  } finally {
    terminal.stop();
    await running;
    await folder.remove();
  }
}

/** An event that happens once. */
class Signal {
  give: () => void = () => {};
  readonly given = new Promise<void>((resolve) => {
    this.give = resolve;
  });
}

class ShutdownPlayer {
  readonly differences: string[] = [];
  #stopping = false;
  #background: Promise<string[]> = Promise.resolve([]);

  constructor(
    private readonly address: Address,
    private readonly terminal: RecordedTerminal,
    private readonly executing: Signal,
  ) {}

  async play(step: LifecycleStep): Promise<void> {
    if (step.signal !== undefined) {
      this.#stopping = true;
      this.terminal.stop();
      await this.terminal.untilOutput("Waiting for in-flight requests");
    }
    if (step.call !== undefined) await this.#call(step as CallStep);
    if (step.index_after !== undefined) {
      const index = await this.#send({ call: "POST /v2/repository/index" });
      this.differences.push(...compareIndex(step.index_after, index?.body as IndexRow[]));
    }
  }

  async join(): Promise<void> {
    this.differences.push(...(await this.#background));
  }

  async #call(step: CallStep): Promise<void> {
    if (step.background_call === undefined) {
      this.differences.push(...(await this.#compare(step)));
      return;
    }
    this.#background = this.#compare(step);
    await this.executing.given;
  }

  async #compare(step: CallStep): Promise<string[]> {
    const answer = await this.#send(step);
    if (step.no_answer === undefined) {
      return answer === undefined ? [`no answer to ${step.call}`] : compareAnswer(step, answer);
    }
    // A stopping server may answer that it is live and that it accepts no more requests.
    const isRefused = answer === undefined || answer.status >= 400 || step.call === "GET /v2/health/live";
    return isRefused && (this.#stopping || answer === undefined)
      ? []
      : [`${step.call}: expected no answer, got ${JSON.stringify(answer)}`];
  }

  async #send({ call, body }: CallStep) {
    const [method = "", path = ""] = call.split(" ");
    const text = body === undefined ? {} : { body_text: JSON.stringify(body) };
    const response = await exchange(this.address, { method, path, headers: {}, ...text });
    if (response === undefined) return undefined;
    const answer = response.body.toString("utf8");
    return { status: response.status, body: answer === "" ? "" : JSON.parse(answer) };
  }
}
