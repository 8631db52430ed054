import { TracerProvider } from "@opentelemetry/sdk-trace";
import { BFloat16Bits, type InferOptions } from "@tritonjs/core";
import { openTelemetry } from "@tritonjs/operations/opentelemetry";
import { serviceOf } from "@tritonjs/server";
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
  tells: {
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
    pb_utils.Logger.log_info("logged")
    request = requests[0]
    told = [request.request_id(), request.correlation_id(), request.flags(), request.timeout(),
            json.loads(request.parameters()), sorted(request.requested_output_names()),
            request.is_cancelled()]
    answer = json.dumps([args, told, json.loads(request.trace().get_context())])
    return [${text("answer")} for _ in requests]`),
  },
  unmerged: {
    config: BATCHED,
    code: modelClass(`def execute(self, requests):
    return [y(x_of(request) * 0 + len(requests)) for request in requests]`),
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
    const spans = openTelemetry({ tracerProvider: new TracerProvider() });
    server = await PythonServer.start(models, { extensions: [spans] });
  });

  /** What the model `tells` got: its arguments, the request, and the context of its trace. */
  const told = async (options: InferOptions = {}) => {
    const { Y } = await server.triton.infer<string>("tells", { X: [1] }, options);
    return textOf(Y);
  };

  afterAll(() => server[Symbol.asyncDispose]());

  it("get the arguments that Triton gives them", async () => {
    const [args] = JSON.parse(await told());
    expect(args).toEqual({
      model_instance_kind: "CPU",
      model_instance_name: "tells_0",
      model_instance_device_id: "0",
      model_repository: "tells",
      model_version: "1",
      model_name: "tells",
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

  it("see all fields of a request, and the context of its span", async () => {
    const text = await told({ id: "r", parameters: { a: 1, b: 2n ** 60n, c: "ü", d: true, e: 0.5 } });
    expect(text).toContain(
      '["r", 0, 0, 0, {"a": 1, "b": 1152921504606846976, "c": "\\u00fc", "d": true, "e": 0.5}, ["Y"], false]',
    );
    const context = { traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/) };
    expect(JSON.parse(text)[2]).toEqual(context);
  });

  it("see parameters that are not finite", async () => {
    const parameters = { n: Number.NaN, p: Number.POSITIVE_INFINITY, m: Number.NEGATIVE_INFINITY };
    expect(await told({ parameters })).toContain('{"n": NaN, "p": Infinity, "m": -Infinity}');
  });

  it("log lines with the id of the request that runs", async () => {
    await told({ id: "one" });
    await told();
    const about = {
      module: "backend_model_instance",
      model: "tells",
      version: 1,
      trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
    };
    const logged = server.subjects.filter((_, i) => server.lines[i] === "logged");
    expect(logged.slice(-2)).toEqual([{ ...about, request_id: "one" }, about]);
  });

  it("may write to their inputs, and return arrays in any memory order", async () => {
    expect(await server.ask("writes", 1, 2, 3, 4)).toEqual([2, 3, 4, 5]);
  });

  it("complete their configurations", async () => {
    const { config } = serviceOf(server.triton).model("completes", "");
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
    const page = await serviceOf(server.triton).metrics();
    expect(page).toContain('seen_total{model="counts"} 3');
    expect(page).toContain('sizes_bucket{le="10"} 1');
    expect(server.lines).toContain("counted 3.0");
    await server.untilLogged("model 'counts': printed 1");
  });

  it("accept and return tensors of many megabytes", async () => {
    const x = Float32Array.from({ length: 6_000_000 }, (_, i) => i);
    const { Y } = await server.triton.infer<string>("writes", { X: x });
    const { data } = Y as { data: Float32Array };
    expect(data.findIndex((value, i) => value !== i + 1)).toBe(-1);
    expect(data).toHaveLength(x.length);
  });

  it("pass BF16 on in DLPack capsules", async () => {
    const { Y } = await server.triton.infer<string>("capsules", { X: new BFloat16Bits([1, 2, 65535]) });
    expect(Y!.data).toEqual(new BFloat16Bits([1, 2, 65535]));
  });

  it("remove their metrics when they are closed", async () => {
    await server.ask("counts", 1);
    await server.triton.close();
    expect(await server.triton.metrics.metrics()).not.toContain("seen_total");
    expect(await outcomeOf(server.ask("counts", 1))).toMatch(/^UNAVAILABLE/);
  });
});
