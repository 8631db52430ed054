import { TritonError } from "@tritonjs/protocol";
import { RESCHEDULE } from "../../callable/reschedule.js";
import type { Timer } from "../../clock/clock.js";
import type { ExecutorContext } from "../../instance/backend.js";
import type { Execution, ExecutionResult, Executor } from "../../instance/executor.js";
import { Restarts } from "../../instance/worker/restarts.js";
import { BatchesOfWorker, type BatchOfWorker } from "../../instance/worker/worker-batches.js";
import { runningFields } from "../../observe/log/request-fields.js";
import { batchFrame } from "./batch-frame.js";
import { BatchesAhead } from "./batches-ahead.js";
import { type FromPython, loadMessage } from "./messages.js";

import { OpenBatches } from "./open-batches.js";
import { PythonAnswerReader } from "./python-answer-reader.js";
import { PythonCallHost } from "./python-call-host.js";
import { PythonReadiness } from "./python-readiness.js";
import { PythonServerRequests } from "./python-server-requests.js";
import { PythonSession, type PythonSettings } from "./python-session.js";

/**
 * Runs an instance of a Python model in a process of its own. When the process dies, the requests that the model had
 * fail. The process restarts after a pause that doubles with each failure, and then runs the batches that it held ahead.
 */
export class PythonExecutor implements Executor {
  readonly isolation = "process";
  readonly mustFinish = false;
  readonly releasesInputs = true;
  details: Readonly<Record<string, string>> = {};
  memoryBytes: number | undefined;
  onHealth: Executor["onHealth"];
  protected settings: PythonSettings;
  readonly #context: ExecutorContext;
  readonly #directory: string;
  readonly #batches = new BatchesOfWorker(() => this.#limit());
  readonly #open = new OpenBatches();
  readonly #ahead: BatchesAhead;
  readonly #answers: PythonAnswerReader;
  readonly #calls: PythonCallHost;
  readonly #serverRequests: PythonServerRequests;
  readonly #readiness: PythonReadiness;
  readonly restarts: Restarts;
  #session: PythonSession | undefined;
  #nextBatch = 0;
  #endedFor: string | undefined;

  /** @param directory of the model */
  constructor(settings: PythonSettings, directory: string, context: ExecutorContext) {
    this.settings = settings;
    this.#directory = directory;
    this.#context = context;
    this.#ahead = new BatchesAhead(context.info.modelConfig, context.hosting);
    const send = (header: object) => this.#session?.send(header);
    this.#answers = new PythonAnswerReader(context, this.#open, send, () => this.#batches.running?.batch);
    this.#calls = new PythonCallHost(
      (header, body) => this.#session?.send(header, body),
      (batch) => this.#open.get(batch)?.models,
    );
    this.#serverRequests = new PythonServerRequests(context, send, () =>
      runningFields(this.#open.executions),
    );
    this.#readiness = new PythonReadiness(context.placement.name, context.clock, () =>
      send({ type: "readiness" }),
    );
    this.restarts = new Restarts(
      context.clock,
      () => this.start(),
      (healthy, reason) => {
        if (reason !== undefined) this.#batches.fail(reason);
        this.onHealth?.(healthy, reason);
      },
      context.info,
      context.log,
    );
  }

  async start(): Promise<void> {
    const { info, nice, clock, log } = this.#context;
    const session = new PythonSession({
      settings: this.settings,
      modelName: info.modelName,
      name: info.instanceName,
      nice,
      clock,
      log,
      init: loadMessage(this.settings, this.#directory, this.#context),
      message: (message, body) => this.#take(message, body),
      crashed: (why) => this.#crashed(why),
    });
    this.#session = session;
    try {
      await session.ready;
    } catch (error) {
      this.#session = undefined;
      this.#serverRequests.close();
      throw error;
    }
    this.details = { pid: session.pid };
    for (const ahead of this.#batches.all) {
      this.#send(ahead);
      const { batch, execution } = ahead;
      for (const index of execution.requests.keys()) {
        if (!execution.isOpen(index)) this.#tellCancelled(batch, index);
      }
    }
    this.#batches.begin();
    this.#opened();
  }

  get takesAhead(): number {
    return this.#ahead.count;
  }

  execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    const batch = this.#nextBatch++;
    execution.watch({
      askedToStop: (index) => this.#tellCancelled(batch, index),
      givenUp: (index) => {
        this.#tellCancelled(batch, index);
        if (this.#batches.running?.batch !== batch) this.#open.closeWhenOver(batch);
      },
    });
    return new Promise((resolve, reject) => {
      const work: BatchOfWorker = { batch, execution, resolve, reject };
      this.#batches.add(work);
      if (this.#batches.running === work) this.#opened();
      this.#send(work);
    });
  }

  #send(work: BatchOfWorker): void {
    const { batch, execution } = work;
    const { header, body } = batchFrame(batch, execution, work !== this.#batches.running);
    this.#session?.command(header, body);
    execution.inputsReady();
  }

  #tellCancelled(batch: number, index: number): void {
    this.#session?.send({ type: "cancel", batch, index });
  }

  /** Opens the running batch: only this batch, and those that senders still answer, may call models. */
  #opened(): void {
    const { running } = this.#batches;
    if (running !== undefined) this.#open.add(running.batch, running.execution);
  }

  async checkReady(): Promise<void> {
    const session = this.#session;
    if (!session?.isReady) throw new TritonError("INTERNAL", this.#unhealthy, { reason: "WORKER_CRASHED" });
    if (session.canTellReadiness) await this.#readiness.check();
  }

  drained(): Promise<void> {
    return this.#open.whenEmpty();
  }

  async stop(): Promise<void> {
    this.restarts.stop();
    const session = this.#session;
    if (session === undefined) {
      const text = `instance '${this.#context.placement.name}' was stopped`;
      this.#batches.fail(new TritonError("UNAVAILABLE", text, { reason: "MODEL_STOPPED" }));
      return;
    }
    if (session.isReady && this.#batches.running === undefined) session.end();
    else session.kill();
    await session.ended;
  }

  #take(message: FromPython, body: Uint8Array): void {
    switch (message.type) {
      case "executed":
        this.#executed(message, body);
        break;
      case "response":
        this.#answers.respond(message, body);
        break;
      case "abandoned":
        this.#answers.abandoned(message.batch, message.index);
        break;
      case "infer":
      case "taken":
      case "stop":
      case "end":
        this.#calls.take(message, body);
        break;
      case "ask":
        this.#serverRequests.answer(message, body);
        break;
      case "forget":
        this.#serverRequests.forget(message);
        break;
      case "log":
        this.#serverRequests.log(message);
        break;
      case "readiness":
        this.#readiness.answered(message);
        break;
    }
  }

  /** Handles the result of `execute`, or its error. */
  #executed(message: Extract<FromPython, { type: "executed" }>, body: Uint8Array): void {
    if (this.#batches.running?.batch !== message.batch) return;
    const { batch, execution, resolve, reject } = this.#batches.takeDone()!;
    this.#opened();
    execution.outputsReady();
    this.restarts.worked();
    this.memoryBytes = message.memory;
    if (message.took !== undefined) this.#ahead.took(message.took);
    if (message.error !== undefined) {
      this.#open.forget(batch);
      reject(new TritonError("INTERNAL", message.error));
      return;
    }
    const results = message.results!.map((result, index) =>
      this.#answers.result(execution, index, result, body),
    );
    if (!results.includes(null)) {
      this.#open.forget(batch);
      resolve(results as ExecutionResult[]);
      return;
    }
    // Senders answer some of the requests, now or later.
    results.forEach((result, index) => {
      if (result === RESCHEDULE) execution.reschedule(index);
      else if (TritonError.is(result)) execution.sendError(index, result, true);
      else if (result !== null) execution.send(index, result, true);
    });
    resolve(undefined);
    this.#open.closeWhenOver(batch);
  }

  #crashed(why: string): void {
    const how = this.#endedFor ?? why;
    this.#endedFor = undefined;
    this.#session = undefined;
    const error = new TritonError("INTERNAL", `${this.#unhealthy} It ${how}.`, { reason: "WORKER_CRASHED" });
    this.restarts.crashed(error);
    this.#batches.takeLost()?.reject(error);
    if (this.restarts.over) this.#batches.fail(error);
    this.#open.fail(error);
    this.#calls.endAll();
    this.#serverRequests.close();
    this.#readiness.fail(error);
  }

  get #unhealthy(): string {
    return `Stub process '${this.#context.placement.name}' is not healthy.`;
  }

  #limit(): Timer | undefined {
    const { clock, hosting } = this.#context;
    const limitMs = hosting.executionTimeoutMs;
    if (limitMs === undefined) return undefined;
    return clock.setTimer(limitMs, () => {
      this.#endedFor = `was ended: its batch ran for more than ${limitMs} ms`;
      this.#session?.kill();
    });
  }
}
