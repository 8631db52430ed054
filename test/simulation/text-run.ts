import { Tensor, TritonError } from "@tritonjs/protocol";
import { Random } from "../../packages/cli/src/data/random.js";
import { planInstances } from "../../packages/core/src/config/instance-groups.js";
import type { BatcherOptions } from "../../packages/core/src/config/model-options.js";
import { resolveConfig } from "../../packages/core/src/config/resolve-config.js";
import type { Execution, Executor } from "../../packages/core/src/instance/backend.js";
import { InstanceGroup } from "../../packages/core/src/instance/instance-group.js";
import { ModelInstance } from "../../packages/core/src/instance/model-instance.js";
import { StepwiseExecutor } from "../../packages/core/src/instance/stepwise-executor.js";
import { InferenceRequest, type RequestSender } from "../../packages/core/src/request/inference-request.js";
import { DynamicBatchScheduler } from "../../packages/core/src/scheduler/dynamic-batch-scheduler.js";
import { Heap } from "../../packages/core/src/scheduler/priority-queue.js";
import { type Clock, DeadlineQueue, type Timer } from "../../packages/core/src/system/clock.js";
import { instanceOwner } from "../../packages/core/test/support/instance-owner.js";
import type { DecoderGraph } from "../../packages/llm/src/decoder/forward-pass.js";
import { GenerationEngine, KvBudget } from "../../packages/llm/src/decoder/generation-engine.js";
import { RunningText } from "../../packages/llm/src/decoder/running-text.js";
import { Admission } from "../../packages/llm/src/decoder/text-generation.js";
import { TextResponses } from "../../packages/llm/src/text-answer.js";
import type { TextTokenizer } from "../../packages/llm/src/text-tokenizer.js";
import recorded from "./recorded-lengths.json" with { type: "json" };

/** A decoder that computes nothing and takes its time. */
export interface SimulatedDecoder {
  /** Texts that run together. */
  readonly maxRunning: number;
  /** Milliseconds of a step, of each text in it, and of each token of a prompt. */
  readonly stepMs: number;
  readonly textMs: number;
  readonly promptTokenMs: number;
}

/** What the scheduler knows of the length of a text: its exact length, a limit of 1 to 4 times it, or its caller alone. */
export type KnownLength = "exact" | "limit" | "caller";

/** A text of the recorded mix. */
export interface RecordedText {
  readonly atMs: number;
  readonly caller: "chat" | "code";
  readonly prompt: number;
  readonly length: number;
  readonly limit: number | undefined;
}

/** What became of a text: milliseconds from its arrival to its start and to its last token; NaN if it was refused. */
export interface TextOutcome {
  readonly caller: string;
  readonly waitMs: number;
  readonly lastTokenMs: number;
}

/** Tokens that one of the simulation stands for. It has a quarter of the steps, each of which takes four times as long. */
export const TOKENS_EACH = 4;
/** Tokens of prompts in a step. */
export const PREFILL_TOKENS = 256;

/** Tokens of the prompt and of the text of each text. */
type Lengths = readonly (readonly number[])[];

const { chat, code } = recorded.textsPerHour;
const CHAT_SHARE = chat / (chat + code);

const MEASURED_TEXTS = 1200;
const measured = new Map<SimulatedDecoder, number>();

/** Milliseconds for each text while texts always wait: measured with texts that all arrive at once. */
async function msOfText(decoder: SimulatedDecoder): Promise<number> {
  const known = measured.get(decoder);
  if (known !== undefined) return known;
  const outcomes = await serveTexts(decoder, {}, textsEvery(0, MEASURED_TEXTS, 1, "exact"));
  const ms = Math.max(...outcomes.map(({ lastTokenMs }) => lastTokenMs)) / MEASURED_TEXTS;
  measured.set(decoder, ms);
  return ms;
}

/** The texts of a run. They arrive at random, and are the same whatever is known of their lengths. */
export async function textsOf(
  decoder: SimulatedDecoder,
  { load, count, seed }: TextRun,
  known: KnownLength,
): Promise<readonly RecordedText[]> {
  return textsEvery((await msOfText(decoder)) / load, count, seed, known);
}

function textsEvery(
  everyMs: number,
  count: number,
  seed: number,
  known: KnownLength,
): readonly RecordedText[] {
  const random = new Random(seed);
  let atMs = 0;
  return Array.from({ length: count }, () => {
    atMs += random.exponential() * everyMs;
    const caller = random.uniform() < CHAT_SHARE ? "chat" : "code";
    const texts: Lengths = recorded[caller];
    const [prompt, length] = texts[random.below(texts.length)]!.map((tokens) =>
      Math.ceil(tokens / TOKENS_EACH),
    ) as [number, number];
    const factor = 1 + 3 * random.uniform();
    const limit = known === "exact" ? length : known === "limit" ? Math.ceil(factor * length) : undefined;
    return { atMs, caller, prompt, length, limit };
  });
}

/** Load as a share of what the decoder can do, number of texts and random numbers of a run. */
export interface TextRun {
  readonly load: number;
  readonly count: number;
  readonly seed: number;
}

/** Generates a recorded mix of texts with the library's own scheduler and generation engine on a virtual clock. */
export async function generateTexts(
  decoder: SimulatedDecoder,
  batcher: BatcherOptions,
  run: TextRun,
  known: KnownLength = "exact",
  limitMs?: (text: { readonly caller: string }) => number | undefined,
): Promise<readonly TextOutcome[]> {
  return serveTexts(decoder, batcher, await textsOf(decoder, run, known), limitMs);
}

async function serveTexts(
  decoder: SimulatedDecoder,
  batcher: BatcherOptions,
  texts: readonly RecordedText[],
  limitMs?: (text: { readonly caller: string }) => number | undefined,
): Promise<readonly TextOutcome[]> {
  const clock = new TurnClock();
  const config = resolveConfig({
    modelName: "m",
    inputs: [],
    outputs: [],
    options: { batcher },
    backend: "text_generation",
    platform: "",
    batchingByDefault: false,
    decoupledByDefault: true,
    defaultInstanceCount: 1,
  });
  const started = new Map<InferenceRequest, number>();
  const instances = new InstanceGroup(
    planInstances(config).map(
      (placement) =>
        new ModelInstance(placement, openDecoder(decoder, clock, started), {
          ...instanceOwner(clock),
          decoupled: true,
        }),
    ),
    clock,
  );
  const scheduler = new DynamicBatchScheduler(config, instances, clock, new DeadlineQueue(clock), 0);
  instances.serve(scheduler);
  await instances.start();
  const outcomes: TextOutcome[] = [];
  for (const { atMs, caller, prompt, length, limit } of texts) {
    await clock.advanceTo(atMs);
    const receive: RequestSender["receive"] = (outcome, final) => {
      if (!final) return;
      const refused = TritonError.is(outcome);
      const waitMs = (started.get(request) ?? Number.NaN) - atMs;
      outcomes.push({ caller, waitMs, lastTokenMs: refused ? Number.NaN : clock.now() - atMs });
      started.delete(request);
    };
    const request = new SizedRequest("m", prompt, length, { receive });
    request.caller = caller;
    if (limit !== undefined) request.parameters = { max_tokens: limit };
    request.queueStart = clock.now();
    const allowedMs = limitMs?.({ caller });
    if (allowedMs !== undefined) request.clientLimitMs = allowedMs;
    try {
      scheduler.enqueue(request);
    } catch (error) {
      if (!TritonError.is(error)) throw error;
      outcomes.push({ caller, waitMs: Number.NaN, lastTokenMs: Number.NaN });
    }
  }
  while (outcomes.length < texts.length && (await clock.runNext()));
  return outcomes;
}

/** A request with the true length of its text, which the scheduler does not see. */
class SizedRequest extends InferenceRequest {
  constructor(
    modelName: string,
    readonly prompt: number,
    readonly length: number,
    sender: RequestSender,
  ) {
    super(modelName, undefined, sender);
  }
}

const GRAPH: DecoderGraph = {
  kv: { layers: [], datatype: "FP32" },
  hasPositions: true,
  hasCacheBranch: false,
  keepsLastLogits: true,
  integers: "INT64",
};
const SAMPLE = { temperature: 0 };
const LETTER = Uint8Array.of(97);
const TOKENIZER = {
  spelling: "bytes",
  addedText: () => undefined,
  bytesOf: () => LETTER,
  isSpecial: () => false,
} as unknown as TextTokenizer;
const WANTED = {
  finishReason: false,
  logprobs: false,
  inputTokens: false,
  outputTokens: false,
  toolCalls: false,
  reasoning: false,
  promptLogprobs: false,
};

/** The engine behind its admission, without the thread between them. */
function openDecoder(
  decoder: SimulatedDecoder,
  clock: TurnClock,
  started: Map<InferenceRequest, number>,
): Executor {
  const { maxRunning, stepMs, textMs, promptTokenMs } = decoder;
  const runTensors = (inputs: ReadonlyMap<string, Tensor>): Promise<Map<string, Tensor>> => {
    const [rows, columns] = inputs.get("input_ids")!.shape as [number, number];
    const ms = TOKENS_EACH * (stepMs + rows * (columns === 1 ? textMs : columns * promptTokenMs));
    const logits = Tensor.fromElements("FP32", [rows, 1, 2], new Float32Array(2 * rows));
    return new Promise((resolve) => {
      clock.setTimer(ms, () => resolve(new Map([["logits", logits]])));
    });
  };
  const session = { runTensors } as unknown as ConstructorParameters<typeof GenerationEngine>[0];
  const contextLength = 16_384;
  const admission = new Admission(maxRunning);
  const budget = new KvBudget(maxRunning * contextLength);
  const limits = {
    contextLength,
    maxRunning,
    prefillTokens: PREFILL_TOKENS,
    cachedTokens: 0,
    pads: "all",
  } as const;
  const engine = new GenerationEngine(session, GRAPH, budget, limits, (load) => {
    admission.take(load);
    executor.onRoom?.();
  });
  const inner: Executor = {
    details: {},
    mustFinish: false,
    start: async () => engine.report(),
    stop: () => engine.idle(),
    execute: async (execution: Execution) => {
      admission.sent();
      const request = execution.requests[0] as unknown as SizedRequest;
      started.set(request, clock.now());
      const { prompt, length } = request;
      const stream = {
        isOpen: () => execution.isOpen(0),
        writable: () => undefined,
        send: (_: number, outputs: ReadonlyMap<string, Tensor>, final?: boolean) =>
          execution.send(0, outputs, final),
        sendError: (_: number, error: TritonError, final?: boolean) => execution.sendError(0, error, final),
      } as unknown as ConstructorParameters<typeof TextResponses>[1];
      const answer = { stream: false, prefix: "", wanted: WANTED };
      const responses = new TextResponses(answer, stream, TOKENIZER, prompt);
      const tokens = new Array<number>(Math.min(prompt, contextLength - length - 1)).fill(1);
      engine.add(
        new RunningText(tokens, length, SAMPLE, [], undefined, "all", TOKENIZER, responses),
        execution.signal,
      );
      engine.countTaken();
      engine.report();
      return undefined;
    },
  } as unknown as Executor;
  const executor: StepwiseExecutor = new StepwiseExecutor(inner, () => admission.capacity);
  return executor;
}

interface Entry {
  readonly at: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/** A virtual clock that lets the event loop turn after each timer, because the engine begins in a turn of its own. */
class TurnClock implements Clock {
  #now = 0;
  #order = 0;
  readonly #timers = new Heap<Entry>((a, b) => a.at - b.at || a.order - b.order);

  now(): number {
    return this.#now;
  }

  wallNow(): number {
    return this.#now;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const entry: Entry = { at: this.#now + Math.max(0, delayMs), order: this.#order++, run };
    this.#timers.add(entry);
    return {
      cancel: () => {
        entry.run = undefined;
      },
    };
  }

  defer(run: () => void): void {
    queueMicrotask(run);
  }

  /** Moves time to `at`, running due timers in order. */
  async advanceTo(at: number): Promise<void> {
    await turn();
    while (this.#next() <= at) await this.runNext();
    this.#now = at;
  }

  /** Runs the next timer. Returns false if there is none. */
  async runNext(): Promise<boolean> {
    if (this.#next() === Number.POSITIVE_INFINITY) return false;
    const { at, run } = this.#timers.take()!;
    this.#now = Math.max(this.#now, at);
    run!();
    await turn();
    return true;
  }

  #next(): number {
    while (this.#timers.first !== undefined && this.#timers.first.run === undefined) this.#timers.take();
    return this.#timers.first?.at ?? Number.POSITIVE_INFINITY;
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
