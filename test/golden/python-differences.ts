import { differenceOf } from "./differences.js";

/** Cases of {@link differenceOf} in which the recorded Python models, run as they are, agree with the recording. */
const agreeing: readonly string[] = [
  // Parameters of responses that are doubles are refused by the Python interface.
  "grpc-0300-param-echo-double",
  // What a Python model returns is passed on, also where it is not what its configuration says.
  "http-0415-model-error-dtype",
  "http-0417-model-error-shape",
  "grpc-0360-err-wrong-out-dtype",
  // A Python model may leave outputs out, and those that its configuration does not have are dropped.
  "grpc-0361-err-wrong-out-name",
  "grpc-0363-err-no-output-requested",
  "grpc-0367-err-ensemble-noout",
];

/** Why a case differs on purpose when its Python model runs; `undefined` when it must agree. */
export function pythonDifferenceOf(id: string): string | undefined {
  return agreeing.includes(id) ? undefined : differenceOf(id);
}
