import { BFloat16Bits } from "@tritonjs/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { hasPython, withoutPython } from "../../../../test/support/python.js";
import { FLOATS, modelClass, PythonServer } from "./python-server.js";

const BATCHED = `max_batch_size: 8
dynamic_batching { max_queue_delay_microseconds: 200000 preferred_batch_size: [ 3 ] }
${FLOATS}`;

const ANSWERS_TEXT = `input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_STRING dims: [ -1 ] } ]`;

/** The largest uint64, which a double cannot hold. */
const LEVELS = "dynamic_batching { priority_levels: 18446744073709551615 default_priority_level: 1 }";

const text = (value: string) =>
  `pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([${value}], np.object_))])`;

const models = {
  arguments: {
    config: `${ANSWERS_TEXT}\n${LEVELS}\nparameters [ { key: "size" value { string_value: "big" } } ]`,
    code: modelClass(`def initialize(self, args):
    self.args = args
def execute(self, requests):
    args = {name: value for name, value in self.args.items() if name != "model_config"}
    args["model_repository"] = os.path.basename(args["model_repository"])
    args["directory"] = os.path.basename(pb_utils.get_model_dir())
    config = json.loads(self.args["model_config"])
    args["size"] = config["parameters"]["size"]["string_value"]
    args["levels"] = str(config["dynamic_batching"]["priority_levels"])
    args["type"] = pb_utils.triton_string_to_numpy(
        pb_utils.get_output_config_by_name(config, "Y")["data_type"]).__name__
    return [${text("json.dumps(args)")} for _ in requests]`),
  },
  unmerged: {
    config: BATCHED,
    code: modelClass(`def execute(self, requests):
    return [y(x_of(request) * 0 + len(requests)) for request in requests]`),
  },
  requests: {
    config: ANSWERS_TEXT,
    code: modelClass(`def execute(self, requests):
    answers = []
    for request in requests:
        told = [request.request_id(), request.correlation_id(), request.flags(), request.timeout(),
                json.loads(request.parameters()), sorted(request.requested_output_names()),
                request.is_cancelled(), request.trace().get_context()]
        answers.append(${text("json.dumps(told)")})
    return answers`),
  },
  writes: {
    code: modelClass(`def execute(self, requests):
    x = x_of(requests[0])
    x += 1
    return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.asfortranarray(x.reshape(2, -1)).T.T.reshape(-1))])]`),
  },
  completes: {
    config: LEVELS,
    code: modelClass(`@staticmethod
def auto_complete_config(config):
    config.add_input({"name": "X", "data_type": "TYPE_FP32", "dims": (np.int64(2),)})
    config.add_output({"name": "Y", "data_type": "TYPE_FP32", "dims": [2]})
    config.set_max_batch_size(4)
    config.set_dynamic_batching()
    assert config.as_dict()["max_batch_size"] == 4
    assert config.as_dict()["dynamic_batching"]["priority_levels"] == 2**64 - 1
    return config
def execute(self, requests):
    return [y(x_of(request)) for request in requests]`),
  },
  contradicts: {
    code: modelClass(`@staticmethod
def auto_complete_config(config):
    config.add_input({"name": "X", "data_type": "TYPE_INT8", "dims": [-1]})
    return config`),
  },
  later: {
    code: modelClass(`def execute(self, requests):
    for request in requests:
        sender = request.get_response_sender()
        answer = y(x_of(request) + 1)
        threading.Timer(0.01, lambda: sender.send(answer, FINAL)).start()
    return [None for _ in requests]`),
  },
  awaits: {
    code: modelClass(`async def execute(self, requests):
    import asyncio
    await asyncio.sleep(0)
    return [y(x_of(request) * 2) for request in requests]`),
  },
  counts: {
    code: modelClass(`def initialize(self, args):
    self.family = pb_utils.MetricFamily(name="seen_total", description="Seen", kind=pb_utils.MetricFamily.COUNTER)
    self.metric = self.family.Metric(labels={"model": "counts"})
    self.sizes_family = pb_utils.MetricFamily(name="sizes", description="Sizes", kind=pb_utils.MetricFamily.HISTOGRAM)
    self.sizes = self.sizes_family.Metric(labels={}, buckets=[1, 10])
def execute(self, requests):
    for request in requests:
        self.metric.increment(len(x_of(request)))
        self.sizes.observe(len(x_of(request)))
    pb_utils.Logger.log_warn("counted " + str(self.metric.value()))
    print("printed", 1)
    try:
        self.metric.increment(-1)
    except pb_utils.TritonModelException as error:
        return [y([self.metric.value(), 1 if "negative" in str(error) else 0])]`),
  },
  large: {
    code: modelClass(`def execute(self, requests):
    return [y(x_of(request)) for request in requests]`),
  },
  capsules: {
    config: `input [ { name: "X" data_type: TYPE_BF16 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_BF16 dims: [ -1 ] } ]`,
    code: modelClass(`def execute(self, requests):
    x = requests[0].inputs()[0]
    same = pb_utils.Tensor.from_dlpack("Z", pb_utils.Tensor("Z", np.arange(3)).to_dlpack())
    assert same.as_numpy().tolist() == [0, 1, 2]
    again = pb_utils.Tensor.from_dlpack("Z", same.to_dlpack())
    again.as_numpy()[0] = 7
    assert same.as_numpy().tolist() == [7, 1, 2]
    fixed = np.arange(2)
    fixed.flags.writeable = False
    assert pb_utils.Tensor.from_dlpack("Z", pb_utils.Tensor("Z", fixed).to_dlpack()).as_numpy().tolist() == [0, 1]
    return [pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("Y", x.to_dlpack())])]`),
  },
};

describe.skipIf(!hasPython)(`Python models${withoutPython}`, () => {
  let server: PythonServer;
  const textOf = (output: unknown) =>
    Buffer.from((output as { data: Uint8Array[] }).data[0]!).toString("utf8");

  beforeAll(async () => {
    server = await PythonServer.start(models);
  });

  afterAll(() => server[Symbol.asyncDispose]());

  it("get the arguments that Triton gives them", async () => {
    const { Y } = await server.triton.infer<string>("arguments", { X: [1] });
    expect(JSON.parse(textOf(Y))).toEqual({
      model_instance_kind: "CPU",
      model_instance_name: "arguments_0",
      model_instance_device_id: "0",
      model_repository: "arguments",
      model_version: "1",
      model_name: "arguments",
      directory: "1",
      size: "big",
      levels: "18446744073709551615",
      type: "object_",
    });
  });

  it("get the requests of a batch one by one", async () => {
    const answers = await Promise.all(
      [1, 2, 3].map((x) => server.triton.infer<string>("unmerged", { X: [[x]] })),
    );
    expect(answers.map(({ Y }) => [...(Y as { data: Float32Array }).data])).toEqual([[3], [3], [3]]);
  });

  it("see all fields of a request", async () => {
    const { Y } = await server.triton.infer<string>(
      "requests",
      { X: [1] },
      { id: "r", parameters: { a: 1, b: 2n ** 60n, c: "ü", d: true, e: 0.5 } },
    );
    expect(textOf(Y)).toBe(
      '["r", 0, 0, 0, {"a": 1, "b": 1152921504606846976, "c": "\\u00fc", "d": true, "e": 0.5}, ["Y"], false, null]',
    );
  });

  it("see parameters that are not finite", async () => {
    const parameters = { n: Number.NaN, p: Number.POSITIVE_INFINITY, m: Number.NEGATIVE_INFINITY };
    const { Y } = await server.triton.infer<string>("requests", { X: [1] }, { parameters });
    expect(textOf(Y)).toContain('{"n": NaN, "p": Infinity, "m": -Infinity}');
  });

  it("may write to their inputs, and return arrays in any memory order", async () => {
    expect(await server.ask("writes", 1, 2, 3, 4)).toEqual([2, 3, 4, 5]);
  });

  it("complete their configurations", async () => {
    const { config } = server.triton.service.model("completes", "");
    expect(config.maxBatchSize).toBe(4);
    expect(config.dynamicBatching).toBeDefined();
    expect(config.input.map(({ name, dims, dataType }) => [name, dims, dataType])).toEqual([
      ["X", [2], "TYPE_FP32"],
    ]);
  });

  it("cannot contradict the written configuration", async () => {
    expect(await server.reasonOf("contradicts")).toMatch(
      /^Internal: ValueError: unable to load model 'contradicts', configuration expects datatype TYPE_FP32 for input 'X', model provides TYPE_INT8\n\nAt:\n {2}.*model\.py\(\d+\): auto_complete_config\n/,
    );
  });

  it("may answer after execute has returned", async () => {
    expect(await server.ask("later", 1, 2)).toEqual([2, 3]);
  });

  it("may be coroutines", async () => {
    expect(await server.ask("awaits", 4)).toEqual([8]);
  });

  it("have metrics and the log of the server", async () => {
    expect(await server.ask("counts", 1, 2, 3)).toEqual([3, 1]);
    const page = await server.triton.service.metrics();
    expect(page).toContain('seen_total{model="counts"} 3');
    expect(page).toContain('sizes_bucket{le="10"} 1');
    expect(server.lines).toContain("counted 3.0");
    await server.untilLogged("model 'counts': printed 1");
  });

  it("accept and return tensors of many megabytes", async () => {
    const x = Float32Array.from({ length: 6_000_000 }, (_, i) => i);
    const { Y } = await server.triton.infer<string>("large", { X: x });
    expect(
      Buffer.compare(new Uint8Array((Y as { data: Float32Array }).data.buffer), new Uint8Array(x.buffer)),
    ).toBe(0);
  });

  it("pass BF16 on in DLPack capsules", async () => {
    const { Y } = await server.triton.infer<string>("capsules", { X: new BFloat16Bits([1, 2, 65535]) });
    expect(Y!.data).toEqual(new BFloat16Bits([1, 2, 65535]));
  });

  it("remove their metrics when they are unloaded", async () => {
    await using other = await PythonServer.start({ counts: models.counts });
    await other.ask("counts", 1);
    await other.triton.close();
    expect(await other.triton.metrics.metrics()).not.toContain("seen_total");
    expect(await outcomeOf(other.ask("counts", 1))).toMatch(/^UNAVAILABLE/);
  });
});
