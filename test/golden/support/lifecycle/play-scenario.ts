import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { type Clock, realClock, type Timer, VirtualClock } from "@tritonjs/testing";
import { servedOptions } from "../../../support/served-options.js";
import { ACCESS_TOKEN, compareRefusal, needsToken, withToken } from "../http/access.js";
import { type Address, exchange } from "../http/exchange.js";
import type { RecordedRequest } from "../http/http-case.js";
import { playedPython } from "../played-python.js";
import { quietLogger } from "../quiet-logger.js";
import { RepositoryFolder } from "../repository-folder.js";
import { repositoryOptions } from "../repository-options.js";
import { type Answer, compareAnswer } from "./compare-answer.js";
import { compareIndex, isUnloading } from "./compare-index.js";
import { pythonOfScenarios } from "./python-code.js";
import type { CallStep, IndexRow, LifecycleStep, Scenario } from "./scenario.js";

/** Plays a scenario against a server of its own, and lists how it differs from the expected outcome. */
export async function playScenario(scenario: Scenario): Promise<string[]> {
  const differences: string[] = [];
  const code = await serve(scenario, differences).then(
    () => 0,
    (error) => {
      differences.push(`the server did not stop: ${error}`);
      return 1;
    },
  );
  if (code !== scenario.exit_code) differences.push(`expected exit code ${scenario.exit_code}, got ${code}`);
  return differences;
}

/** Resolves when the server has stopped as expected. */
async function serve(scenario: Scenario, differences: string[]): Promise<void> {
  const folders = [await RepositoryFolder.create(scenario.repository)];
  if (scenario.repository2 !== undefined)
    folders.push(await RepositoryFolder.create(scenario.repository2, 2));
  const options = repositoryOptions(scenario.flags);
  const clock = options.modelControlMode === "poll" ? new PollClock() : realClock;
  const triton = new Triton(
    servedOptions({
      allowModelFileOverride: true,
      modelRepository: folders.map(({ path }) => path),
      backends: { python: playedPython(pythonOfScenarios, (ms) => waitOn(clock, ms)) },
      ...options,
      clock,
      logger: quietLogger,
      security: { accessToken: ACCESS_TOKEN },
    }),
  );
  try {
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
    const player = new Player(addresses.http!, folders[0]!, clock, options.repositoryPollSecs ?? 15);
    for (const [i, step] of scenario.steps.entries()) await player.play(step, i);
    differences.push(...player.differences);
  } finally {
    await triton.close();
    for (const folder of folders) await folder.remove();
  }
}

class Player {
  readonly differences: string[] = [];
  /** Lines of the recorded server's log so far. */
  readonly #log: string[] = [];
  readonly #background = new Map<string, { readonly step: CallStep; readonly answer: Promise<Answer> }>();

  constructor(
    private readonly address: Address,
    private readonly folder: RepositoryFolder,
    private readonly clock: Clock,
    private readonly pollSecs: number,
  ) {}

  async play(step: LifecycleStep, place: number): Promise<void> {
    const before = this.differences.length;
    this.#log.push(...(step.log ?? []));
    if (step.write !== undefined) await this.folder.write(step.write);
    if (step.remove !== undefined) await this.folder.delete(step.remove);
    if (step.touch !== undefined) await this.folder.touch(step.touch);
    if (step.wait_seconds !== undefined) await this.#wait(step.wait_seconds);
    if (step.call !== undefined) await this.#call(step as CallStep);
    if (step.join !== undefined) await this.#join(step.join);
    if (step.index_after !== undefined) await this.#look(step.index_after, step.server_ready_after);
    for (let i = before; i < this.differences.length; i++) {
      this.differences[i] = `step ${place}: ${this.differences[i]}`;
    }
  }

  async #call(step: CallStep): Promise<void> {
    const answer = this.#send(step.call, step.body);
    if (step.background_call === undefined)
      this.differences.push(...compareAnswer(step, await answer, this.#log));
    else this.#background.set(step.background_call, { step, answer });
  }

  async #join(name: string): Promise<void> {
    const { step, answer } = this.#background.get(name)!;
    this.differences.push(...compareAnswer(step, await answer));
  }

  async #look(rows: readonly IndexRow[], ready: number | undefined): Promise<void> {
    const index = (await this.#send("POST /v2/repository/index", {})).body as IndexRow[];
    this.differences.push(...compareIndex(rows, index, this.#log));
    const { status } = await this.#send("GET /v2/health/ready");
    if (isUnloading([...rows, ...index]) || ready === undefined || ready === status) return;
    this.differences.push(`server ready: expected ${ready}, got ${status}`);
  }

  /** Only polling waits for time to pass. */
  async #wait(seconds: number): Promise<void> {
    if (!(this.clock instanceof PollClock)) return;
    for (let left = Math.floor(seconds / this.pollSecs); left > 0; left--) {
      await this.clock.letPoll(this.pollSecs * 1000);
    }
  }

  async #send(call: string, body?: unknown): Promise<Answer> {
    const [method = "", path = ""] = call.split(" ");
    const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
    const request = { method, path, headers: {}, ...(text === undefined ? {} : { body_text: text }) };
    if (!needsToken({}, request)) return this.#exchange(call, request);
    const refused = await exchange(this.address, request);
    if (refused?.status !== 404) this.differences.push(...compareRefusal(request, refused));
    return this.#exchange(call, withToken(request));
  }

  async #exchange(call: string, request: RecordedRequest): Promise<Answer> {
    const response = await exchange(this.address, request);
    if (response === undefined) throw new Error(`no answer to ${call}`);
    const answer = response.body.toString("utf8");
    return { status: response.status, body: answer === "" ? "" : JSON.parse(answer) };
  }
}

/** A clock that knows when a poll is over: the next one is then set. */
class PollClock extends VirtualClock {
  #timers = 0;

  override setTimer(delayMs: number, run: () => void): Timer {
    this.#timers++;
    return super.setTimer(delayMs, run);
  }

  async letPoll(ms: number): Promise<void> {
    const before = this.#timers;
    await this.advance(ms);
    while (this.#timers === before) await this.settle();
  }
}

function waitOn(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(ms, resolve));
}
