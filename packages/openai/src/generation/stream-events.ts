import { BodyStream, ClientGone, type V2Response } from "@tritonjs/http/frontend";
import { TritonError } from "@tritonjs/protocol";
import { describeError, type ErrorAnswer } from "../errors/error-answer.js";
import type { FinishReason } from "../model/text-piece.js";
import type { OpenAiExchange } from "./exchange.js";
import { Generation, type GenerationPlan, type Usage } from "./generation.js";
import type { ChoiceDelta } from "./text-choice.js";

/** Writes the events of a stream. Each method returns the text of its events. */
export interface EventWriter {
  begin(): string;
  delta(choice: number, delta: ChoiceDelta): string;
  choiceEnd(choice: number, reason: FinishReason): string;
  end(usage: Usage | undefined): string;
  /** The last event of a stream that failed. */
  error(error: ErrorAnswer): string;
}

/** Headers of a stream of events. */
const HEADERS: V2Response["headers"] = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  // Asks nginx not to collect the events.
  "x-accel-buffering": "no",
};

/**
 * Runs a plan and streams its events. The answer begins with the model's first response, so an error before it has a
 * status of its own. A slow client slows the model down (back-pressure).
 *
 * @throws the error of the model if it comes first; ClientGone when the client leaves before
 */
export async function streamAnswer(
  exchange: OpenAiExchange,
  plan: GenerationPlan,
  writer: EventWriter,
): Promise<V2Response> {
  // The exchange ends with the first event, and the generation continues.
  const memory = exchange.memory.split(exchange.memory.bytes);
  try {
    return await streamEvents(exchange, plan, writer, () => memory.release());
  } catch (error) {
    memory.release();
    if (TritonError.is(error) && error.code === "UNAVAILABLE") await exchange.service.refusalTurn?.();
    throw error;
  }
}

function streamEvents(
  exchange: OpenAiExchange,
  plan: GenerationPlan,
  writer: EventWriter,
  onSettled: () => void,
): Promise<V2Response> {
  return new Promise((resolve, reject) => {
    let isBegun = false;
    const events = new BodyStream({
      onDrain: () => generation.resume(),
      onCancel: () => generation.cancel(),
    });
    const send = (text: string): void => {
      if (text !== "" && !events.write(Buffer.from(text))) generation.pause();
    };
    const generation = new Generation(exchange, plan, {
      onBegin: () => {
        isBegun = true;
        send(writer.begin());
        resolve({ status: 200, headers: HEADERS, body: events });
      },
      onDelta: (choice, delta) => send(writer.delta(choice, delta)),
      onChoiceEnd: (choice, reason) => send(writer.choiceEnd(choice, reason)),
      onEnd: (usage) => {
        send(writer.end(usage));
        events.end();
      },
      onError: (error) => {
        if (!isBegun) {
          reject(error);
          return;
        }
        send(writer.error(describeError(exchange.request, error)));
        events.end();
      },
      onSettled: () => {
        onSettled();
        events.end();
        reject(new ClientGone());
      },
    });
    generation.start();
  });
}

/** One event without a name. */
export function dataEvent(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** The event after which clients of OpenAI expect no further one. */
export const DONE_EVENT = "data: [DONE]\n\n";
