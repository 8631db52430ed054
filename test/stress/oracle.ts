import type { RequestHandle } from "./sent-request.js";
import { FAILURE, failsAlone, type StressModel, streamLength } from "./stress-models.js";

/** Events around the requests that can explain how they ended. */
export interface Circumstances {
  /** Times when a model began to be unbound, or everything to be closed, by name. */
  readonly stoppedAt: ReadonlyMap<string, readonly number[]>;
  readonly models: ReadonlyMap<string, StressModel>;
  /** Cancelled requests of each sequence, by model and id. */
  readonly brokenSequences: ReadonlySet<string>;
}

export const sequenceKey = (model: string, id: bigint) => `${model}/${id}`;

/** Fault in how a request ended; undefined when that end is possible. */
export function faultOf(request: RequestHandle, around: Circumstances): string | undefined {
  const { ask, ends, values, late } = request;
  if (ends.length !== 1) return `ended ${ends.length} times`;
  if (late > 0) return `heard ${late} responses after its end`;
  const [{ text, at }] = ends as [{ text: string; at: number }];
  const added = stagesOf(ask).length;
  if (values.some((value) => value !== ask.value + added)) return `was answered with ${values}`;
  const excuse = text === "answered" ? answered(request) : excused(request, text, at, around);
  return excuse ? undefined : `ended with "${text}" at ${at}`;
}

/** The value that the model sees, or each of its members in turn. */
function stagesOf({ model, value }: RequestHandle["ask"]): number[] {
  return model.members.length === 0 ? [value] : model.members.map((_, i) => value + i);
}

/** Whether a request could be answered, and was in full. */
function answered({ ask, values }: RequestHandle): boolean {
  if (stagesOf(ask).some(failsAlone)) return false;
  return values.length === (ask.model.kind === "stream" ? streamLength(ask.value) : ask.rows);
}

function excused(request: RequestHandle, text: string, at: number, around: Circumstances): boolean {
  const { ask, cancelledAt } = request;
  const { model, value, deadline, sequence } = ask;
  const stages = stagesOf(ask);
  const stopped = [model.name, ...model.members].some((name) =>
    around.stoppedAt.get(name)?.some((time) => time <= at),
  );
  const sequenceBroke =
    sequence !== undefined && around.brokenSequences.has(sequenceKey(model.name, sequence.id));
  const code = text.slice(0, text.indexOf(" "));
  switch (code) {
    case "CANCELLED":
      return cancelledAt !== undefined || sequenceBroke;
    case "UNAVAILABLE":
      return stopped || model.rejects || sequenceBroke || (deadline !== undefined && deadline <= at);
    case "UNSUPPORTED":
      return text.endsWith(FAILURE.slice("UNSUPPORTED ".length)) && stages.some(failsAlone);
    case "INTERNAL":
      if (!text.endsWith("the batch broke")) return false;
      if (model.members.length === 0) return model.broken.has(value);
      return model.members.some((name, i) => around.models.get(name)!.broken.has(stages[i]!));
    case "NOT_FOUND":
      return stopped;
    case "INVALID_ARG":
      // The sequence is over: idle, cancelled, or its model was loaded again.
      return sequence !== undefined && !sequence.start && text.includes("must specify the START flag");
    default:
      return false;
  }
}
