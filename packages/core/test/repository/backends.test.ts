import { Tensor, Triton, TritonError } from "@tritonjs/core";
import { type BackendFactory, callbackExecutor } from "@tritonjs/core/backend";
import { type InferenceRequest, VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { sendRequest } from "../../../../test/support/send-request.js";

const tensor = (name: string, type: string, dims: string) =>
  `{ name: "${name}" data_type: TYPE_${type} dims: [ ${dims} ] }`;

const REPEAT = `backend: "repeat" model_transaction_policy { decoupled: true }
  input [ ${tensor("IN", "INT32", "-1")}, ${tensor("DELAY", "UINT32", "-1")}, ${tensor("WAIT", "UINT32", "1")} ]
  output [ ${tensor("OUT", "INT32", "1")}, ${tensor("IDX", "UINT32", "1")} ]`;

describe("the test backends", () => {
  it("identity returns its inputs, and zeros for omitted inputs", async () => {
    const config = `backend: "identity" max_batch_size: 4
      input [ ${tensor("INPUT0", "FP32", "2")}, { name: "INPUT1" data_type: TYPE_INT32 dims: [ -1 ] optional: true } ]
      output [ ${tensor("OUTPUT0", "FP32", "2")}, ${tensor("OUTPUT1", "INT32", "-1")} ]`;
    await using models = await RepositoryOnDisk.create({ "m/config.pbtxt": config, "m/1/": "" });
    await using triton = new Triton({ modelRepository: models.path });
    const { OUTPUT0, OUTPUT1 } = await triton.infer("m", { INPUT0: [[1, 2]] });
    expect([[...OUTPUT0!.data], [...OUTPUT1!.data], OUTPUT1!.shape]).toEqual([[1, 2], [0], [1, 1]]);
  });

  it("repeat responds once for each element", async () => {
    const inputs = { IN: int32(4, 5, 6), DELAY: uint32(0, 0, 0), WAIT: uint32(0) };
    expect(await responses("repeat", REPEAT, inputs)).toEqual([[4], [5], [6]]);
  });

  it("repeat sends the first response only for a model that is not decoupled", async () => {
    const inputs = { IN: int32(4, 5, 6), DELAY: uint32(0, 0, 0), WAIT: uint32(0) };
    const plain = REPEAT.replace("decoupled: true", "decoupled: false");
    expect(await responses("repeat", plain, inputs)).toEqual([[4]]);
  });

  it("identity refuses a sequence whose id is a text", async () => {
    const config = `backend: "identity" max_batch_size: 1 sequence_batching {}
      input [ ${tensor("INPUT0", "INT32", "1")} ] output [ ${tensor("OUTPUT0", "INT32", "1")} ]`;
    await using models = await RepositoryOnDisk.create({ "m/config.pbtxt": config, "m/1/": "" });
    await using triton = new Triton({ modelRepository: models.path });
    const ask = (id: string | bigint) =>
      triton.infer("m", { INPUT0: [[1]] }, { sequence: { id, start: true, end: true } });
    expect([...(await ask(7n)).OUTPUT0!.data]).toEqual([1]);
    await expect(ask("seven")).rejects.toThrow("correlation ID in request is not an unsigned int");
  });

  it("square responds n times with n", async () => {
    const config = `backend: "square" model_transaction_policy { decoupled: true }
      input [ ${tensor("IN", "INT32", "1")} ] output [ ${tensor("OUT", "INT32", "1")} ]`;
    expect(await responses("square", config, { IN: int32(3) })).toEqual([[3], [3], [3]]);
    expect(await responses("square", config, { IN: int32(0) })).toEqual([]);
  });

  it("repeat ends a cancelled request at once during its wait, and stops", async () => {
    const clock = new VirtualClock();
    await using models = await RepositoryOnDisk.create({ "m/config.pbtxt": REPEAT, "m/1/": "" });
    const triton = new Triton({ modelRepository: models.path, clock });
    await triton.ready();
    const days = 49 * 24 * 3_600_000;
    const ended: unknown[] = [];
    const ask = (DELAY: number, WAIT: number) => {
      const inputs = new Map(Object.entries({ IN: int32(1), DELAY: uint32(DELAY), WAIT: uint32(WAIT) }));
      return sendRequest(
        triton.service.model("m", ""),
        { inputs },
        (outcome, final) => void (final && ended.push(outcome)),
      ) as InferenceRequest;
    };
    const request = ask(days, days);
    await clock.advance(1);
    expect(request.executing).toBe(true);
    request.cancel();
    await clock.advance(0);
    ask(0, days);
    await clock.advance(0);
    expect(ended).toEqual([expect.objectContaining({ code: "CANCELLED" }), undefined]);
    const closed = triton.close();
    await clock.advance(60_000);
    await closed;
  });

  it.each([
    [
      "identity",
      identityConfig().replace('"OUTPUT0" data_type: TYPE_FP32', '"OUTPUT0" data_type: TYPE_INT32'),
      "expected input and output datatype to match, got TYPE_FP32 and TYPE_INT32",
    ],
    [
      "identity",
      identityConfig('parameters { key: "execute_delay_ms" value { string_value: "x" } }'),
      "parameter 'execute_delay_ms' of model 'm': expected an integer of at least 0, got 'x'",
    ],
    ["square", 'backend: "square"', "expected 1 input, got 0"],
    [
      "repeat",
      'backend: "repeat" max_batch_size: 1',
      "repeat backend only supports models with max_batch_size == 0",
    ],
  ])("%s rejects a configuration that it cannot serve", async (_name, config, reason) => {
    await using models = await RepositoryOnDisk.create({ "m/config.pbtxt": config, "m/1/": "" });
    await using triton = new Triton({
      modelRepository: models.path,
      logger: { error() {}, warn() {}, info() {}, debug() {} },
    });
    await expect(triton.ready()).rejects.toThrow(reason);
  });
});

it("a custom backend gets the place of its model and may complete its configuration", async () => {
  const seen: string[] = [];
  const doubling: BackendFactory = ({ name, version, directory, versionDirectory, settings }) => {
    seen.push(`${name} ${version} ${versionDirectory.slice(directory.length)} ${settings.mode}`);
    return {
      backendName: "doubling",
      platform: "",
      describe: () => undefined,
      completeConfig: (config) => {
        config.addInput({ name: "x", dataType: "TYPE_FP32", dims: [-1] });
        config.addOutput({ name: "y", dataType: "TYPE_FP32", dims: [-1] });
        config.setMaxBatchSize(8);
      },
      createExecutor: (context) =>
        callbackExecutor(
          (requests: readonly { inputs: object }[]) => requests.map(() => ({ y: [[2]] })),
          context,
        ),
    };
  };
  await using models = await RepositoryOnDisk.create({ "m/config.pbtxt": 'backend: "doubling"', "m/3/": "" });
  await using triton = new Triton({
    modelRepository: models.path,
    backends: { doubling },
    backendConfig: { doubling: { mode: "fast" } },
  });
  const { y } = await triton.infer("m", { x: [[1]] });
  expect([...y!.data]).toEqual([2]);
  expect(seen).toEqual(["m 3 /3 fast"]);
  expect(triton.service.modelConfig("m", "")).toMatchObject({ maxBatchSize: 8, input: [{ name: "x" }] });
});

/** The responses of a decoupled model. */
async function responses(name: string, config: string, inputs: Record<string, Tensor>): Promise<number[][]> {
  await using models = await RepositoryOnDisk.create({
    [`${name}/config.pbtxt`]: config,
    [`${name}/1/`]: "",
  });
  await using triton = new Triton({ modelRepository: models.path });
  await triton.ready();
  return new Promise((resolve, reject) => {
    const answers: number[][] = [];
    const given = new Map(Object.entries(inputs));
    sendRequest(triton.service.model(name, ""), { inputs: given }, (outcome, final) => {
      if (TritonError.is(outcome)) reject(outcome);
      else if (outcome !== undefined) answers.push([...(outcome.outputs.get("OUT")!.elements as Int32Array)]);
      if (final) resolve(answers);
    });
  });
}

const int32 = (...values: number[]) => Tensor.fromElements("INT32", [values.length], Int32Array.from(values));
const uint32 = (...values: number[]) =>
  Tensor.fromElements("UINT32", [values.length], Uint32Array.from(values));
