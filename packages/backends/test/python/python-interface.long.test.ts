import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasPython, withoutPython } from "../../../../test/support/python.js";
import { DECOUPLED, modelClass, PythonServer } from "./python-server.js";

/** Checks of each part of the interface, as Python code that fails when one does not hold. */
const ROWS = {
  requests: `request = pb_utils.InferenceRequest(model_name="m", requested_output_names=["Y"], inputs=[])
        assert request.request_id() == "" and request.correlation_id() == 0 and request.flags() == 0
        assert request.timeout() == 0 and request.inputs() == [] and request.requested_output_names() == {"Y"}
        assert json.loads(request.parameters()) == {} and request.trace().get_context() is None
        request.set_flags(pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START | pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END)
        assert request.flags() == 3 and not request.is_cancelled()
        more = pb_utils.InferenceRequest(model_name="m", requested_output_names=[], inputs=[], correlation_id="a",
            request_id="r", model_version=2, flags=1, timeout=9, parameters={"a": 1, "b": True, "c": "d"},
            preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_GPU, 0), trace=given.trace())
        assert more.correlation_id() == "a" and more.request_id() == "r" and more.flags() == 1 and more.timeout() == 9
        assert json.loads(more.parameters()) == {"a": 1, "b": True, "c": "d"}`,
  refused_requests: `raises(TypeError, lambda: make(inputs=None))
        raises(TypeError, lambda: make(model_name=None))
        raises(TypeError, lambda: make(requested_output_names=[None]))
        raises(TypeError, lambda: make(correlation_id=None))
        raises(TypeError, lambda: make(request_id=None))
        raises(TypeError, lambda: make(model_version=None))
        raises(TypeError, lambda: make(flags=None))
        raises(pb_utils.TritonModelException, lambda: make(inputs=[None]))
        raises(pb_utils.TritonModelException, lambda: make(parameters=[1]))
        raises(pb_utils.TritonModelException, lambda: make(parameters={"a": 1.5}))
        raises(pb_utils.TritonModelException, lambda: given.set_release_flags(7))`,
  tensors: `tensor = pb_utils.Tensor("T", np.arange(6, dtype=np.int16).reshape(2, 3)[:, ::-1])
        assert tensor.name() == "T" and tensor.shape() == [2, 3] and tensor.is_cpu()
        assert pb_utils.triton_to_numpy_type(tensor.triton_dtype()) == np.int16
        assert tensor.as_numpy().tolist() == [[2, 1, 0], [5, 4, 3]] and tensor.as_numpy().flags.c_contiguous
        text = pb_utils.Tensor("T", np.array([b"a", "b\\u00fc"], np.object_))
        assert pb_utils.deserialize_bytes_tensor(pb_utils.serialize_byte_tensor(text.as_numpy())).tolist()[1] == b"b\\xc3\\xbc"
        raises(TypeError, lambda: pb_utils.Tensor("T", None))
        raises(TypeError, lambda: pb_utils.Tensor(None, np.arange(2)))
        raises(TypeError, lambda: pb_utils.Tensor("", None))
        raises(pb_utils.TritonModelException, lambda: pb_utils.Tensor("T", np.array([1j])))`,
  dlpack: `tensor = pb_utils.Tensor("T", np.arange(4, dtype=np.float32))
        assert np.from_dlpack(tensor).tolist() == [0, 1, 2, 3] and tensor.__dlpack_device__() == (1, 0)
        assert pb_utils.Tensor.from_dlpack("U", tensor.to_dlpack()).as_numpy().tolist() == [0, 1, 2, 3]
        assert pb_utils.Tensor.from_dlpack("U", np.arange(2)).name() == "U"
        raises(pb_utils.TritonModelException, lambda: pb_utils.Tensor.from_dlpack("U", None))
        raises(pb_utils.TritonModelException, lambda: pb_utils.Tensor.from_dlpack("", tensor))
        raises(pb_utils.TritonModelException, lambda: pb_utils.Tensor.from_dlpack("U", np.arange(6).reshape(2, 3).T))
        raises(pb_utils.TritonModelException, lambda: pb_utils.Tensor("T", np.array([b"x"])).to_dlpack())`,
  responses: `error = pb_utils.TritonError("no", pb_utils.TritonError.NOT_FOUND)
        response = pb_utils.InferenceResponse(error=error, parameters={"n": 1})
        assert response.has_error() and response.error().message() == "no" and response.error().code() == pb_utils.TritonError.NOT_FOUND
        assert json.loads(response.parameters()) == {"n": 1} and response.output_tensors() == []
        assert not pb_utils.InferenceResponse([pb_utils.Tensor("T", np.arange(1))]).has_error()
        assert pb_utils.TritonError("x").code() == pb_utils.TritonError.INTERNAL
        raises(TypeError, lambda: pb_utils.InferenceResponse(output_tensors=None))
        raises(pb_utils.TritonModelException, lambda: pb_utils.InferenceResponse([None]))`,
  configuration: `config = json.loads(self.args["model_config"])
        assert pb_utils.get_input_config_by_name(config, "X")["data_type"] == "TYPE_FP32"
        assert pb_utils.get_output_config_by_name(config, "Y")["dims"] == [-1]
        assert pb_utils.get_input_config_by_name(config, "Z") is None
        assert pb_utils.using_decoupled_model_transaction_policy(config) is False
        assert pb_utils.triton_string_to_numpy("TYPE_FP16") == np.float16
        assert self.args["model_instance_device_id"] == "0" and self.args["model_instance_kind"] == "CPU"
        assert pb_utils.get_model_dir() == os.path.join(self.args["model_repository"], self.args["model_version"])
        assert pb_utils.get_input_tensor_by_name(given, "Z") is None`,
  shared_memory: `import c_python_backend_utils as c_utils
        assert c_utils.shared_memory is pb_utils.shared_memory and c_utils.Tensor is pb_utils.Tensor
        assert c_utils.shared_memory.free_memory() == pb_utils.shared_memory.free_memory() > 0`,
  log: `for level in ("INFO", "WARNING", "ERROR", "VERBOSE"):
            pb_utils.Logger.log("at " + level, getattr(pb_utils.Logger, level))
        pb_utils.Logger.log("at none")
        raises(TypeError, lambda: pb_utils.Logger.log("x", 1))
        raises(TypeError, lambda: pb_utils.Logger.log("x", None))
        for log in ("log_info", "log_warn", "log_error", "log_verbose"):
            raises(TypeError, lambda: getattr(pb_utils.Logger, log)(None))`,
  metrics: `gauge = pb_utils.MetricFamily(name="level", description="Level", kind=pb_utils.MetricFamily.GAUGE)
        level = gauge.Metric(labels={"of": "water"})
        level.set(3)
        level.increment(-1)
        assert level.value() == 2
        sizes = pb_utils.MetricFamily(name="heights", description="Heights", kind=pb_utils.MetricFamily.HISTOGRAM)
        height = sizes.Metric(labels={}, buckets=[1, 2])
        height.observe(1.5)
        raises(pb_utils.TritonModelException, lambda: height.increment(1))
        for buckets in (None, [2, 1], [1, 1], "1"):
            raises(pb_utils.TritonModelException, lambda: sizes.Metric(labels={}, buckets=buckets))
        raises(pb_utils.TritonModelException, lambda: gauge.Metric(labels={}, buckets=[1]))
        raises(pb_utils.TritonModelException, lambda: gauge.Metric(labels="x"))
        raises(pb_utils.TritonModelException, lambda: level.observe(1))
        del gauge
        assert "MetricFamily' has been deleted" in raises(pb_utils.TritonModelException, lambda: level.set(1))`,
};

const HELPERS = `def initialize(self, args):
    self.args = args
`;

const rowModel = (row: string) => ({
  code: modelClass(`${HELPERS}def execute(self, requests):
    def make(**changes):
        given = {"model_name": "m", "requested_output_names": [], "inputs": []}
        given.update(changes)
        return pb_utils.InferenceRequest(**given)
    def raises(kind, act):
        try:
            act()
        except kind as error:
            return str(error)
        raise AssertionError("nothing was raised")
    for given in requests:
        ${row}
    return [y([1]) for _ in requests]`),
});

describe.skipIf(!hasPython)(`the interface of Python models${withoutPython}`, () => {
  let server: PythonServer;
  beforeAll(async () => {
    const rows = Object.entries(ROWS).map(([name, row]) => [name, rowModel(row)] as const);
    const slow = {
      config: DECOUPLED,
      code: modelClass(`def execute(self, requests):
    sender = requests[0].get_response_sender()
    threading.Thread(target=self.run, args=(sender, requests[0])).start()
def run(self, sender, request):
    sender.send(y([1]))
    while not (sender.is_cancelled() and request.is_cancelled()):
        time.sleep(0.002)
    sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("left", pb_utils.TritonError.CANCELLED)), FINAL)
    pb_utils.Logger.log_info("cancelled")`),
    };
    server = await PythonServer.start({ ...Object.fromEntries(rows), slow }, { logVerbose: 1 });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it.each(Object.keys(ROWS))("has %s", async (name) => {
    expect(await server.ask(name, 0)).toEqual([1]);
  });

  it("writes to the log at every level", () => {
    for (const level of ["INFO", "WARNING", "ERROR", "VERBOSE", "none"]) {
      expect(server.lines).toContain(`at ${level}`);
    }
  });

  it("tells a request and its sender that the client has left", async () => {
    const controller = new AbortController();
    const responses = server.stream("slow", [1], controller.signal);
    await responses.next();
    controller.abort();
    await expect(responses.next()).rejects.toThrow(/cancelled/);
    await server.untilLogged("cancelled");
  });
});
