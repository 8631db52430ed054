import type { Files } from "../lifecycle/scenario.js";

function member(maxBatchSize: number, pairs: number, tensor: string, rest = ""): string {
  const tensors = (kind: string) =>
    Array.from(
      { length: pairs },
      (_, i) => `{ name: "${kind}${i}" ${tensor}${i === 1 && kind === "INPUT" ? rest : ""} }`,
    );
  return (
    `backend: "identity"\nmax_batch_size: ${maxBatchSize}\n` +
    `input [ ${tensors("INPUT").join(", ")} ]\noutput [ ${tensors("OUTPUT").join(", ")} ]\n`
  );
}

const configs: Readonly<Record<string, string>> = {
  a: member(4, 1, "data_type: TYPE_FP32 dims: [ -1 ]"),
  i: member(4, 1, "data_type: TYPE_INT32 dims: [ 4 ]"),
  n: member(0, 1, "data_type: TYPE_FP32 dims: [ 4 ]"),
  two: member(4, 2, "data_type: TYPE_FP32 dims: [ 4 ]"),
  opt: member(4, 2, "data_type: TYPE_FP32 dims: [ 4 ]", " optional: true"),
  dec: `${member(4, 1, "data_type: TYPE_FP32 dims: [ -1 ]")}model_transaction_policy { decoupled: true }\n`,
  bad: member(4, 1, "data_type: TYPE_FP32 dims: [ -1 ]").replace("identity", "nosuch"),
};

/** The members of the recorded ensembles. */
export const ensembleMembers: Files = Object.fromEntries(
  Object.entries(configs).flatMap(([name, text]) => [
    [`${name}/1/`, ""],
    [`${name}/config.pbtxt`, text],
  ]),
);
