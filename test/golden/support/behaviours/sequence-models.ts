import { sequenceState } from "@tritonjs/core";
import type { Behaviour, ModelRequest } from "./behaviour.js";
import type { DecoupledBehaviour } from "./decoupled.js";
import { firstNumber, int32, strings } from "./tensors.js";

const totals = sequenceState(() => ({ sum: 0 }));

/** The sum of an input over the sequence so far. */
function runningSum({ sequence }: ModelRequest, value: number): number {
  const total = totals(sequence);
  total.sum += value;
  return total.sum;
}

const withInfo: Behaviour = (request) => {
  const { correlationId, inputs } = request;
  const sum = runningSum(request, firstNumber(inputs.INPUT));
  const info = `${correlationId ?? 0}|${firstNumber(inputs.START)}|${firstNumber(inputs.END)}`;
  return { OUTPUT: int32([sum], [1, 1]), INFO: strings([info], [1, 1]) };
};

/** The sequence models of `http/models.json` and `grpc/models.json`. */
export const sequenceBehaviours: Readonly<Record<string, Behaviour>> = {
  seq: (request) => ({ OUTPUT0: int32([runningSum(request, firstNumber(request.inputs.INPUT0))], [1, 1]) }),
  seq_u64: withInfo,
  seq_str: withInfo,
  seq_any: withInfo,
  seq_old: withInfo,
};

/** The decoupled one. */
export const sequenceStream: DecoupledBehaviour = async (request, sender) => {
  const sum = runningSum(request, firstNumber(request.inputs.INPUT));
  await sender.send({ OUTPUT: int32([sum]) });
  await sender.send({ OUTPUT: int32([-sum]) });
  sender.close();
};
