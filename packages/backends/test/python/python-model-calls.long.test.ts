import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasPython, withoutPython } from "../../../../test/support/python.js";
import { DECOUPLED, FLOATS, modelClass, PythonServer } from "./python-server.js";

const call = (model: string) =>
  `pb_utils.InferenceRequest(model_name=${model}, requested_output_names=["Y"], inputs=[pb_utils.Tensor("X", x)])`;

const models = {
  doubles: {
    code: modelClass(`def execute(self, requests):
    return [y(x_of(request) * 2) for request in requests]`),
  },
  counts_up: {
    config: DECOUPLED,
    code: modelClass(`def execute(self, requests):
    for request in requests:
        sender = request.get_response_sender()
        for i in range(int(x_of(request)[0])):
            if sender.is_cancelled():
                pb_utils.Logger.log_info("counting was given up")
                break
            sender.send(y([i]))
        sender.send(flags=FINAL)`),
  },
  waits: {
    config: DECOUPLED,
    code: modelClass(`def execute(self, requests):
    sender = requests[0].get_response_sender()
    threading.Thread(target=self.run, args=(sender, x_of(requests[0])[0])).start()
def run(self, sender, x):
    sender.send(y([x]))
    while not sender.is_cancelled():
        time.sleep(0.002)
    pb_utils.Logger.log_info("saw that it was given up")
    sender.send(flags=FINAL)`),
  },
  calls: {
    code: modelClass(`def execute(self, requests):
    x = x_of(requests[0])
    answer = ${call('"doubles"')}.exec()
    return [y(pb_utils.get_output_tensor_by_name(answer, "Y").as_numpy() + 1)]`),
  },
  awaits: {
    code: modelClass(`async def execute(self, requests):
    import asyncio
    x = x_of(requests[0])
    answers = await asyncio.gather(*[${call('"doubles"')}.async_exec() for _ in range(3)])
    return [y(sum(answer.output_tensors()[0].as_numpy() for answer in answers))]`),
  },
  streams: {
    code: modelClass(`def execute(self, requests):
    x = x_of(requests[0])
    answers = ${call('"counts_up"')}.exec(decoupled=True)
    seen = [a.output_tensors()[0].as_numpy()[0] for a in answers if len(a.output_tensors()) > 0]
    again = [a for a in answers]
    return [y([len(again)] + seen)]`),
  },
  gives_up: {
    code: modelClass(`def execute(self, requests):
    x = x_of(requests[0])
    answers = ${call('"counts_up"')}.exec(decoupled=True)
    first = next(answers)
    answers.cancel()
    rest = [a for a in answers]
    codes = [a.error().code().name for a in rest if a.has_error()]
    return [y([1 if rest[-1].output_tensors() == [] and codes == [] else 0])]`),
  },
  stops_others: {
    code: modelClass(`def execute(self, requests):
    x = x_of(requests[0])
    answers = ${call('"tells_end"')}.exec(decoupled=True)
    next(answers)
    answers.cancel()
    rest = [a for a in answers]
    return [y([len(rest), 1 if rest[-1].error().code() == pb_utils.TritonError.CANCELLED else 0])]`),
  },
  tells_end: {
    config: DECOUPLED,
    code: modelClass(`def execute(self, requests):
    sender = requests[0].get_response_sender()
    sender.send(y([1]))
    while not sender.is_cancelled():
        time.sleep(0.002)
    sender.send(y([2]))
    error = pb_utils.TritonError("was told", pb_utils.TritonError.CANCELLED)
    sender.send(pb_utils.InferenceResponse(error=error), FINAL)`),
  },
  lets_go: {
    code: modelClass(`def execute(self, requests):
    x = x_of(requests[0])
    answers = ${call('"counts_up"')}.exec(decoupled=True)
    next(answers)
    del answers
    return [y([1])]`),
  },
  awaits_streams: {
    code: modelClass(`async def execute(self, requests):
    import asyncio
    x = x_of(requests[0])
    async def first():
        answers = await ${call('"meets"')}.async_exec(decoupled=True)
        return [a for a in answers][0].output_tensors()[0].as_numpy()
    return [y(sum(await asyncio.gather(first(), first())))]`),
  },
  meets: {
    config: DECOUPLED,
    code: modelClass(`def initialize(self, args):
    self.waiting = []
def execute(self, requests):
    self.waiting.extend(requests)
    if len(self.waiting) < 2:
        return
    for request in self.waiting:
        request.get_response_sender().send(y(x_of(request)), FINAL)
    self.waiting.clear()`),
  },
  refused: {
    config: `input [ { name: "X" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_STRING dims: [ 1 ] } ]`,
    code: modelClass(`def execute(self, requests):
    name, x = x_of(requests[0])[0], np.ones(1, np.float32)
    error = ${call("name")}.exec().error()
    return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([error.message()], np.object_))])]`),
  },
  manages: {
    code: modelClass(`def execute(self, requests):
    seen = [pb_utils.is_model_ready("sleeper")]
    pb_utils.load_model("sleeper")
    seen.append(pb_utils.is_model_ready("sleeper"))
    pb_utils.unload_model("sleeper")
    config = json.dumps({"backend": "identity", "max_batch_size": 0,
        "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
        "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}]})
    pb_utils.load_model("sleeper", config=config, files={"file:1/readme": b"nothing"})
    seen.append(pb_utils.is_model_ready("sleeper", "1"))
    try:
        pb_utils.load_model("nobody")
    except pb_utils.TritonModelException as error:
        seen.append("failed to load 'nobody'" in str(error))
    return [y(seen)]`),
  },
  forks: {
    code: `${modelClass(`def initialize(self, args):
    self.pool = multiprocessing.get_context("fork").Pool(2)
def execute(self, requests):
    sums = self.pool.map(in_child, [1, 2, 3, 4])
    new = multiprocessing.get_context("fork").Pool(3)
    sums += new.map(in_child, [5, 6, 7])
    new.close()
    new.join()
    return [y(sums)]
def finalize(self):
    self.pool.terminate()`)}
import multiprocessing

def in_child(value):
    x = pb_utils.Tensor("X", np.array([value], np.float32))
    def call(model, **how):
        request = pb_utils.InferenceRequest(model_name=model, inputs=[x], requested_output_names=["Y"])
        return request.exec(**how)
    if "what_there_is_not" not in call("what_there_is_not").error().message():
        return -1
    pb_utils.Logger.log_info("from a child: " + str(value))
    try:
        pb_utils.MetricFamily("of_a_child", "", pb_utils.MetricFamily.COUNTER)
        return -2
    except RuntimeError as error:
        if "a process that the model forked" not in str(error):
            return -3
    if not pb_utils.is_model_ready("doubles"):
        return -4
    got = float(call("doubles").output_tensors()[0].as_numpy()[0])
    streamed = [r.output_tensors()[0].as_numpy()[0] for r in call("counts_up", decoupled=True) if r.output_tensors()]
    return 1000 * len(streamed) + got
`,
  },
  loses_a_child: {
    code: modelClass(`def execute(self, requests):
    x = np.array([1e6], np.float32)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        for _ in ${call('"counts_up"')}.exec(decoupled=True):
            os.write(writer, b".")
    os.read(reader, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    x = x_of(requests[0])
    return [y(${call('"doubles"')}.exec().output_tensors()[0].as_numpy())]`),
  },
  sleeper: {
    code: modelClass("def execute(self, requests):\n    return [y(x_of(request)) for request in requests]"),
    config: FLOATS,
  },
};

describe.skipIf(!hasPython)(`calls of Python models${withoutPython}`, () => {
  let server: PythonServer;

  beforeAll(async () => {
    const loaded = Object.keys(models).filter((name) => name !== "sleeper");
    server = await PythonServer.start(models, { modelControlMode: "explicit", loadModel: loaded });
  });

  afterAll(() => server[Symbol.asyncDispose]());

  const refusalOf = async (model: string) => {
    const { Y } = await server.triton.infer<string>("refused", { X: [model] });
    return Buffer.from((Y as { data: Uint8Array[] }).data[0]!).toString();
  };

  it("return the outputs of the other model", async () => {
    expect(await server.ask("calls", 3)).toEqual([7]);
  });

  it("run at the same time in coroutines", async () => {
    expect(await server.ask("awaits", 1)).toEqual([6]);
  });

  it("iterate over the responses of a decoupled model, more than once", async () => {
    expect(await server.ask("streams", 50)).toEqual([51, ...Array.from({ length: 50 }, (_, i) => i)]);
  });

  it("can be cancelled: the other model is notified and decides how it ends", async () => {
    expect(await server.ask("gives_up", 1e7)).toEqual([1]);
    await server.untilLogged("counting was given up");
    expect(await server.ask("stops_others", 1)).toEqual([2, 1]);
  });

  it("end when the model drops their responses", async () => {
    const before = server.lines.filter((line) => line === "counting was given up").length;
    expect(await server.ask("lets_go", 1e7)).toEqual([1]);
    await server.untilLogged("counting was given up", before + 1);
  });

  it("resolve with the first response of a decoupled model, and other calls run meanwhile", async () => {
    expect(await server.ask("awaits_streams", 3)).toEqual([6]);
  });

  it("may be made by forked processes, before the batch and during it", async () => {
    const expected = [1, 2, 3, 4, 5, 6, 7].map((value) => 1000 * value + 2 * value);
    expect(await server.ask("forks", 1)).toEqual(expected);
    expect(await server.ask("forks", 2)).toEqual(expected);
    await server.untilLogged("from a child: 7");
  });

  it("end with the forked process that made them", async () => {
    const before = server.lines.filter((line) => line.includes("counting was given up")).length;
    expect(await server.ask("loses_a_child", 4)).toEqual([8]);
    await server.untilLogged("counting was given up", before + 1);
  });

  it("are rejected with Triton's texts", async () => {
    expect(await refusalOf("nobody")).toBe(
      "Model nobody - Error when running inference: Failed for execute the inference request. Model 'nobody' is not " +
        "ready.",
    );
    expect(await refusalOf("counts_up")).toContain(
      "Model counts_up is using the decoupled. The current BLS request call doesn't support models using the " +
        "decoupled transaction policy.",
    );
    expect(await refusalOf("refused")).toBe(
      "Model refused - Error when running inference: [request id: <id_unknown>] inference input 'X' data-type is " +
        "'FP32', but model 'refused' expects 'BYTES'",
    );
  });

  it("load and unload models", async () => {
    expect(await server.ask("manages", 0)).toEqual([0, 1, 1, 1]);
  });

  it("end when the client of a decoupled model leaves", async () => {
    const controller = new AbortController();
    const service = serviceOf(server.triton);
    expect(service.isModelReady("waits", "")).toBe(true);
    const seen: number[] = [];
    const stream = server.stream("waits", [7], controller.signal);
    await expect(
      (async () => {
        for await (const values of stream) {
          seen.push(...values);
          controller.abort();
        }
      })(),
    ).rejects.toThrow(/cancelled/);
    expect(seen).toEqual([7]);
    await server.untilLogged("saw that it was given up");
  });

  it("let a decoupled model wait for a slow client", async () => {
    let seen = 0;
    for await (const [value] of server.stream("counts_up", [500])) {
      expect(value).toBe(seen++);
      await new Promise(setImmediate);
    }
    expect(seen).toBe(500);
  });
});
