import { setTimeout as sleep } from "node:timers/promises";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import { expect, it } from "vitest";
import { ask, IN_A_PROCESS, javascript, repositoryWith, startServer } from "./served-repository.js";

/** Seconds for which the server stands still: longer than the idle limit of its sequences. A minute was tried by hand. */
const SECONDS = Number(process.env.SUSPEND_SECONDS ?? 4);

const SUM = `
const sums = new Map();
export default class Sum {
  execute(requests) {
    return requests.map(({ inputs: { x }, sequenceStart, correlationId }) => {
      const sum = (sequenceStart ? 0 : sums.get(correlationId)) + x.data[0];
      sums.set(correlationId, sum);
      return { y: [[sum]] };
    });
  }
}`;

const SLOW = `
export default class Slow {
  async execute(requests) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    return requests.map(({ inputs: { x } }) => ({ y: x.data }));
  }
}`;

it("a server that was suspended answers what it had accepted and what came meanwhile", {
  timeout: 180_000 + SECONDS * 1000,
}, async () => {
  const path = await repositoryWith({
    "slow/config.pbtxt": javascript(IN_A_PROCESS),
    "slow/1/model.js": SLOW,
    "sum/config.pbtxt": javascript(
      "max_batch_size: 4 sequence_batching { max_sequence_idle_microseconds: 3000000 oldest { } }",
    ),
    "sum/1/model.js": SUM,
  });
  const { client, program } = await startServer(
    path,
    "--grpc-keepalive-time=1000",
    "--grpc-keepalive-timeout=1000",
  );
  const grpcAddress = /Started GRPCInferenceService at ([\d.]+:\d+)/.exec(
    await program.untilOutput("Started GRPCInferenceService", "stderr"),
  )![1]!;
  await using grpc = new InferenceServerClient(grpcAddress);
  const step = async (value: number, id: number, start: boolean) => {
    const inputs = { x: { datatype: "FP32" as const, shape: [1, 1], data: [value] } };
    const result = await client.infer("sum", { inputs, sequence: { id, start }, timeoutMs: 300_000 });
    return result.elements("y", "FP32")[0];
  };
  expect(await ask(client, "slow", 1)).toBe(1);
  expect(await grpc.isServerLive()).toBe(true);
  expect(await step(1, 7, true)).toBe(1);

  const patient = { timeoutMs: 300_000 };
  const accepted = [ask(client, "slow", 2, patient), ask(client, "slow", 3, patient)];
  program.signalGroup("SIGSTOP");
  const meanwhile = [ask(client, "slow", 4, patient), step(2, 7, false), grpc.isServerLive(patient)];
  await sleep(SECONDS * 1000);
  program.signalGroup("SIGCONT");

  expect(await Promise.all(accepted)).toEqual([2, 3]);
  // The step came in time, so the idle limit has not ended its sequence.
  expect(await Promise.all(meanwhile)).toEqual([4, 3, true]);
  expect(await client.isServerReady()).toBe(true);
  expect(await grpc.isServerReady()).toBe(true);
  expect(await ask(client, "slow", 5)).toBe(5);
});
