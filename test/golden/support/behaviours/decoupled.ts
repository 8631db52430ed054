import { TritonError } from "@tritonjs/core";
import type { ModelRequest, ModelResult, PlayedModel } from "./behaviour.js";
import { sequenceStream } from "./sequence-models.js";
import { elements, firstNumber, firstText, int32, strings, tensor } from "./tensors.js";

/** The response sender of a decoupled model, as in the library, with untyped tensors. */
export interface Sender {
  send(result: ModelResult, options?: { readonly final?: boolean }): Promise<void>;
  close(): void;
}

/** The behaviour of a recorded decoupled model for one request. */
export type DecoupledBehaviour = (request: ModelRequest, sender: Sender, model: PlayedModel) => Promise<void>;

/** A request of a decoupled model. */
export type DecoupledRequest = ModelRequest & { readonly responseSender: Sender };

/** Turns a behaviour into a plain callback that returns at once: requests are played side by side. */
export function toDecoupledFunc(behaviour: DecoupledBehaviour, model: PlayedModel) {
  return (requests: readonly DecoupledRequest[]): void => {
    for (const request of requests) {
      const { responseSender: sender } = request;
      behaviour(request, sender, model).catch((error: Error) => sender.send(error, { final: true }));
    }
  };
}

/** The decoupled models of `http/models.json` and `grpc/models.json`, and `dec` of the metrics. */
export const decoupledBehaviours: Readonly<Record<string, DecoupledBehaviour>> = {
  repeat: async ({ inputs: { IN } }, sender) => {
    for (const [i, value] of (elements(IN) as Int32Array).entries()) {
      const error = new TritonError("INVALID_ARG", `negative element at ${i}`);
      await sender.send(value < 0 ? error : { OUT: int32([value]), IDX: uint32(i) });
    }
    sender.close();
  },
  llm_stream: async ({ inputs: { text_input: text, max_tokens: limit } }, sender) => {
    const all = firstText(text).split(" ");
    const words = all.slice(0, limit === undefined ? undefined : firstNumber(limit));
    for (const [i, word] of words.entries()) {
      const final = i === words.length - 1;
      const ids = int32(Array.from({ length: i + 1 }, (_, id) => id));
      if (word === "FAIL") await sender.send(new TritonError("UNAVAILABLE", `failed at word ${i}`));
      else await sender.send({ text_output: strings([word]), token_id: ids }, { final });
    }
    sender.close();
  },
  repeat_cpp: async ({ inputs: { IN, DELAY, WAIT } }, sender, model) => {
    const delays = elements(DELAY) as Uint32Array;
    for (const [i, value] of (elements(IN) as Int32Array).entries()) {
      await model.sleep(delays[i] ?? 0);
      await sender.send({ OUT: int32([value]), IDX: uint32(i) });
    }
    await model.sleep(firstNumber(WAIT));
    sender.close();
  },
  seq_dec: sequenceStream,
  rep: countUp,
  stat_rep: countUp,
  rep_b: async ({ inputs: { IN } }, sender) => {
    for (const value of elements(IN) as Int32Array) await sender.send({ OUT: int32([value], [1, 1]) });
    sender.close();
  },
  dec: async ({ inputs: { INPUT0 } }, sender) => {
    const times = firstNumber(INPUT0);
    for (let i = 0; i < times; i++) await sender.send({ OUTPUT0: INPUT0 as NonNullable<typeof INPUT0> });
    sender.close();
  },
  square: async ({ inputs: { IN } }, sender) => {
    const times = firstNumber(IN);
    for (let i = 0; i < times; i++) await sender.send({ OUT: int32([times]) });
    sender.close();
  },
};

/**
 * Sends `COUNT` responses as its other inputs say. Mode 1: the last one is final; mode 2: continues when cancelled.
 */
async function countUp({ inputs, signal }: ModelRequest, sender: Sender, model: PlayedModel): Promise<void> {
  const { COUNT, DELAY_MS, ERROR_AT, MODE, START_MS } = inputs;
  const count = firstNumber(COUNT);
  const mode = firstNumber(MODE);
  if (START_MS !== undefined) await model.sleep(firstNumber(START_MS));
  for (let i = 0; i < count; i++) {
    if (i > 0 && DELAY_MS !== undefined) await model.sleep(firstNumber(DELAY_MS));
    if (signal.aborted && mode !== 2) {
      await sender.send(new TritonError("CANCELLED", "cancelled by client"), { final: true });
      return;
    }
    const failed = i === firstNumber(ERROR_AT, -1);
    const result = failed
      ? new TritonError("INVALID_ARG", `bad item ${i}`)
      : { OUT: int32([i * 10]), IDX: uint32(i) };
    await sender.send(result, { final: mode === 1 && i === count - 1 });
  }
  sender.close();
}

function uint32(value: number) {
  return tensor(Uint32Array.of(value), [1]);
}
