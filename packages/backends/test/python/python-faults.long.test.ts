import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { Tensor } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { outcomeOf, outcomesOf } from "../../../../test/support/outcome.js";
import { hasPython, pythonProgram, withoutPython } from "../../../../test/support/python.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { sendRequest } from "../../../../test/support/send-request.js";
import { DECOUPLED, FLOATS, modelClass, PythonServer } from "./python-server.js";

const NORMAL = "def execute(self, requests):\n    return [y(x_of(request)) for request in requests]";
const BATCHED = `max_batch_size: 4
dynamic_batching { max_queue_delay_microseconds: 200000 preferred_batch_size: [ 2 ] }
${FLOATS}`;

/** Models that cannot be loaded, and the reasons. */
const broken = {
  no_syntax: { code: "def x(:\n" },
  no_import: { code: "import what_there_is_not\n" },
  no_class: { code: "import numpy\n" },
  raises_on_import: { code: 'raise RuntimeError("not today")\n' },
  raises_in_init: {
    code: modelClass(`def __init__(self):\n    raise ValueError("no model")\n${NORMAL}`),
  },
  raises_in_initialize: {
    code: modelClass(`def initialize(self, args):\n    raise ValueError("no weights")\n${NORMAL}`),
  },
  exits_in_initialize: {
    code: modelClass(`def initialize(self, args):\n    sys.exit(3)\n${NORMAL}`),
  },
  dies_in_initialize: {
    code: modelClass(`def initialize(self, args):\n    os._exit(3)\n${NORMAL}`),
  },
  calls_in_initialize: {
    code: modelClass(`def initialize(self, args):
    pb_utils.InferenceRequest(model_name="m", requested_output_names=[], inputs=[]).exec()
${NORMAL}`),
  },
  limits_no_input: {
    code: modelClass(`tritonjs_max_elements = {"Z": 4}\n${NORMAL}`),
  },
  limits_to_nothing: {
    code: modelClass(`tritonjs_max_elements = {"X": 0}\n${NORMAL}`),
  },
  raises_in_completion: {
    code: modelClass(
      `@staticmethod\ndef auto_complete_config(config):\n    raise ValueError("no tensors")\n${NORMAL}`,
    ),
  },
  completes_nothing: {
    code: modelClass(`@staticmethod\ndef auto_complete_config(config):\n    pass\n${NORMAL}`),
  },
};

/** Models that load and then misbehave. */
const working = {
  normal: { code: modelClass(NORMAL) },
  misbehaves: {
    config: FLOATS,
    code: modelClass(`def execute(self, requests):
    what = int(x_of(requests[0])[0])
    if what == 0:
        raise ValueError("boom")
    if what == 1:
        return None
    if what == 2:
        return [y(0), y(0)]
    if what == 3:
        return "text"
    if what == 4:
        return ["text"]
    if what == 5:
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([7], np.int32))])]
    if what == 6:
        sender = requests[0].get_response_sender()
        sender.send(y(6), FINAL)
        sender.send(y(6), FINAL)
    if what == 7:
        sys.exit("enough")
    if what == 8:
        requests[0].get_response_sender()
        return [None]
    if what == 9:
        requests[0].set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        return [None]
    if what == 10:
        return [pb_utils.InferenceResponse(error=pb_utils.TritonError("not found", pb_utils.TritonError.NOT_FOUND))]
    if what == 11:
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array(["text"]))])]
    if what == 12:
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == 13:
        os._exit(9)
    if what == 14:
        os.write(3, b"nonsense" * 10)
        time.sleep(60)
    return [y(what)]`),
  },
  limits: {
    config: BATCHED,
    code: modelClass(`def initialize(self, args):
    self.tritonjs_max_elements = {"X": 2_000_000}
def execute(self, requests):
    self.most = max([getattr(self, "most", 0), *(x_of(request).size for request in requests)])
    return [y([[self.most]]) for request in requests]`),
  },
  one_of_two: {
    config: BATCHED,
    code: modelClass(`def execute(self, requests):
    def answer(request):
        if x_of(request)[0][0] < 0:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("negative", pb_utils.TritonError.INVALID_ARG))
        return y(x_of(request))
    return [answer(request) for request in requests]`),
  },
  forgets: {
    config: DECOUPLED,
    code: modelClass(`def execute(self, requests):
    requests[0].get_response_sender().send(y([1]))`),
  },
  returns: {
    config: DECOUPLED,
    code: modelClass(`def execute(self, requests):
    return [y([1])]`),
  },
  sends_on: {
    config: DECOUPLED,
    code: modelClass(`def execute(self, requests):
    sender = requests[0].get_response_sender()
    sender.send(y([1]))
    sender.send(y([2]), FINAL)
    refused = []
    for last in [(y([3]), 0), (y([4]), FINAL), (None, FINAL)]:
        try:
            sender.send(*last)
        except pb_utils.TritonModelException as error:
            refused.append(str(error))
    pb_utils.Logger.log_info(json.dumps(refused))
    if x_of(requests[0])[0] == 2:
        sender.send(y([5]))`),
  },
  wrong_outputs: {
    config: `max_batch_size: 4
dynamic_batching { max_queue_delay_microseconds: 200000 preferred_batch_size: [ 2 ] }
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]`,
    code: modelClass(`def execute(self, requests):
    def answer(x):
        y = {1: np.zeros((1, 3), np.float32), 2: np.zeros((1, 2), np.int64), 3: np.array([["a", "b"]])}.get(
            x, np.full((1, 2), x, np.float32))
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y" if x != 4 else "Z", y)])
    def safely(x):
        try:
            return answer(x)
        except pb_utils.TritonModelException as error:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error)))
    return [safely(int(x_of(request)[0][0])) for request in requests]`),
  },
  raises_later: {
    config: DECOUPLED,
    code: modelClass(`async def execute(self, requests):
    requests[0].get_response_sender().send(y([1]))
    raise ValueError("later")`),
  },
  prints: {
    code: modelClass(`def execute(self, requests):
    for _ in range(100):
        sys.stdout.write("x" * (1 << 20))
    print()
    print("done printing")
    return [y([1])]`),
  },
  raises_in_finalize: {
    code: modelClass(`${NORMAL}\ndef finalize(self):\n    raise ValueError("cannot end")`),
  },
};

describe.skipIf(!hasPython)(`faulty Python models${withoutPython}`, () => {
  let server: PythonServer;

  beforeAll(async () => {
    server = await PythonServer.start({ ...broken, ...working });
  });

  afterAll(() => server[Symbol.asyncDispose]());

  it.each([
    ["no_syntax", /^Internal: SyntaxError: invalid syntax \(model\.py, line 1\)/],
    ["no_import", /^Internal: ModuleNotFoundError: No module named 'what_there_is_not'/],
    ["no_class", /^Internal: AttributeError: module '1\.model' has no attribute 'TritonPythonModel'$/],
    ["raises_on_import", /^Internal: RuntimeError: not today\n\nAt:\n {2}.*model\.py\(1\): <module>\n$/],
    ["raises_in_init", /^Internal: ValueError: no model\n\nAt:\n {2}.*model\.py\(\d+\): __init__\n$/],
    [
      "raises_in_initialize",
      /^Internal: ValueError: no weights\n\nAt:\n {2}.*model\.py\(\d+\): initialize\n$/,
    ],
    ["exits_in_initialize", /^Internal: SystemExit: 3/],
    [
      "dies_in_initialize",
      /^Internal: Stub process 'dies_in_initialize_0' is not healthy\. It exited with code 3/,
    ],
    [
      "limits_no_input",
      /^Internal: tritonjs_max_elements: expected a dict with a number of elements above 0 for some of the inputs 'X', got 4 for 'Z'$/,
    ],
    ["limits_to_nothing", /for some of the inputs 'X', got 0 for 'X'$/],
    ["calls_in_initialize", /BLS is only supported during the 'execute' function\./],
    [
      "raises_in_completion",
      /^Internal: ValueError: no tensors\n\nAt:\n {2}.*\(\d+\): auto_complete_config\n$/,
    ],
    [
      "completes_nothing",
      /auto_complete_config function in model 'completes_nothing' must return a valid pb\.ModelConfig object\.$/,
    ],
  ])("the model %s is not loaded, and the index names the reason", async (name, reason) => {
    expect(await server.reasonOf(name)).toMatch(reason);
  });

  const failed = "INTERNAL Failed to process the request(s) for model 'misbehaves_0', message: ";

  it.each([
    [0, `${failed}ValueError: boom`],
    [
      1,
      "INTERNAL model 'misbehaves' returned None for a request without taking its response sender: return a response or call get_response_sender()",
    ],
    [
      2,
      `${failed}Number of InferenceResponse objects do not match the number of InferenceRequest objects. ` +
        "InferenceRequest(s) size is:1, and InferenceResponse(s) size is:2",
    ],
    [3, `${failed}Expected a list in the execute return, found type '<class 'str'>'.`],
    [
      4,
      `${failed}Expected an 'InferenceResponse' object in the execute function return list, found type '<class 'str'>'.`,
    ],
    [6, "done"],
    [7, `${failed}SystemExit: enough`],
    [
      8,
      "INTERNAL model 'misbehaves' released a request without sending TRITONSERVER_RESPONSE_COMPLETE_FINAL",
    ],
    [
      9,
      "INTERNAL model 'misbehaves' returned RESCHEDULE, which needs sequence batching with iterative sequences",
    ],
    [10, "NOT_FOUND not found"],
    [11, `${failed}TritonModelException: NumPy dtype is not supported.`],
  ])("misbehaviour %i fails only its own request", async (what, outcome) => {
    const [got, other] = await outcomesOf([server.ask("misbehaves", what), server.ask("normal", 1)]);
    expect(got?.slice(0, outcome.length)).toBe(outcome);
    expect(other).toBe("done");
  });

  it("an input above the model's limit is refused before it is copied, while others are answered", async () => {
    const { triton } = server;
    const X = [new Float32Array(100_000_000)];
    const { arrayBuffers } = process.memoryUsage();
    const call = outcomeOf(triton.infer<string>("limits", { X }));
    expect(process.memoryUsage().arrayBuffers - arrayBuffers).toBeLessThan(2 ** 20);
    const ask = (size: number) => triton.infer<string>("limits", { X: [new Float32Array(size)] });
    const others = [outcomeOf(ask(2_000_001)), ask(2_000_000), ask(1)] as const;
    const text = "INVALID_ARG input 'X' of model 'limits': expected at most 2000000 elements, got ";
    expect(await call).toBe(`${text}100000000 in shape [1,100000000]`);
    expect(await others[0]).toBe(`${text}2000001 in shape [1,2000001]`);
    for (const other of others.slice(1)) await other;
    // A request over a transport is not copied for its caller, and does not reach the process.
    const tensor = Tensor.fromElements("FP32", [1, 2_000_001], new Float32Array(2_000_001));
    expect(() =>
      sendRequest(serviceOf(triton).model("limits", ""), { inputs: new Map([["X", tensor]]) }, () => {}),
    ).toThrow("expected at most 2000000 elements, got 2000001");
    const { Y } = await triton.infer<string>("limits", { X: [[1]] });
    expect((Y as { data: Float32Array }).data[0]).toBe(2_000_000);
  });

  it("wrong data types are passed on and logged", async () => {
    const { Y } = await server.triton.infer<string>("misbehaves", { X: [5] });
    expect((Y as { data: Int32Array }).data).toEqual(Int32Array.of(7));
    expect(server.lines).toContain(
      "model 'misbehaves' returned a wrong output 'Y': expected FP32, got INT32; clients get the response unchecked",
    );
  });

  it.each([
    [12, "was ended by SIGSEGV"],
    [13, "exited with code 9"],
    [14, "wrote data that the library cannot read (the message is not a valid frame)"],
  ])("a process that dies (%i) fails its request and restarts", async (what, how) => {
    expect(await outcomeOf(server.ask("misbehaves", what))).toBe(
      `INTERNAL Stub process 'misbehaves_0' is not healthy. It ${how}.`,
    );
    expect(await server.ask("misbehaves", 20)).toEqual([20]);
  });

  it("one failed request of a batch does not fail the others", async () => {
    const outcomes = await outcomesOf(
      [-1, 1].map((x) => server.triton.infer<string>("one_of_two", { X: [[x]] })),
    );
    expect(outcomes).toEqual(["INVALID_ARG negative", "done"]);
  });

  const streamed = async (name: string) => {
    const seen: number[][] = [];
    const outcome = await outcomeOf(
      (async () => {
        for await (const values of server.stream(name, [1])) seen.push(values);
      })(),
    );
    return [outcome.split("\n")[0], seen.length];
  };

  it("requests of decoupled models without a final response end with an error", async () => {
    expect(await streamed("forgets")).toEqual([
      "INTERNAL model 'forgets' released a request without sending TRITONSERVER_RESPONSE_COMPLETE_FINAL",
      1,
    ]);
    expect(await streamed("returns")).toEqual([
      "INTERNAL Failed to process the request(s) for model 'returns_0', message: Python model 'returns_0' is using " +
        "the decoupled mode and the execute function must return None.",
      0,
    ]);
    expect(await streamed("raises_later")).toEqual([
      "INTERNAL Failed to process the request(s) for model 'raises_later_0', message: ValueError: later",
      1,
    ]);
  });

  it("responses after the final one are rejected and not sent to the client", async () => {
    const closed = "Unable to send response. Response sender has been closed.";
    expect(await streamed("sends_on")).toEqual(["done", 2]);
    expect(await server.untilLogged('["Unable')).toBe(
      JSON.stringify([closed, closed, closed]).replaceAll('","', '", "'),
    );
    const seen: number[][] = [];
    for await (const values of server.stream("sends_on", [2])) seen.push(values);
    expect(seen).toEqual([[1], [2]]);
    expect(await server.ask("normal", 1)).toEqual([1]);
  });

  const wrong = (x: number) => server.triton.infer<string>("wrong_outputs", { X: [[x]] });

  it("outputs with other dims or another type are passed on and logged, and the rest of the batch runs", async () => {
    for (const [x, shape] of [
      [1, [1, 3]],
      [2, [1, 2]],
    ] as const) {
      const [got, other] = await Promise.all([wrong(x), wrong(7)]);
      expect((got.Y as { shape: readonly number[] }).shape).toEqual(shape);
      expect([...(other.Y as { data: Float32Array }).data]).toEqual([7, 7]);
    }
    expect(server.lines).toContain(
      "model 'wrong_outputs' returned a wrong output 'Y': expected shape [-1,2], got [1,3]; clients get the response unchecked",
    );
  });

  it("a request whose output cannot be a tensor fails, and outputs that were not requested are left out", async () => {
    const outcomes = await outcomesOf([wrong(3), wrong(7)]);
    expect(outcomes).toEqual(["INTERNAL NumPy dtype is not supported.", "done"]);
    const [got, other] = await Promise.all([wrong(4), wrong(7)]);
    expect([Object.keys(got), Object.keys(other)]).toEqual([[], ["Y"]]);
  });

  it("the server keeps only the last line of 100 MB of output", async () => {
    const before = process.memoryUsage().rss;
    let written = 0;
    const keep = server.lines.push.bind(server.lines);
    server.lines.push = (...lines) => {
      for (const line of lines) written += line.length;
      return keep(...lines.filter((line) => line.length < 1000));
    };
    expect(await server.ask("prints", 1)).toEqual([1]);
    await server.untilLogged("done printing");
    expect(written).toBeGreaterThan(100 << 20);
    expect(process.memoryUsage().rss - before).toBeLessThan(90 << 20);
  });

  it("an error raised by finalize is logged", async () => {
    await using other = await PythonServer.start({ raises_in_finalize: working.raises_in_finalize });
    await other.triton.close();
    await other.untilLogged("ValueError: cannot end");
  });
});

describe("faulty Python programs", () => {
  const reasonWith = async (executable: string) => {
    const options = { backendConfig: { python: { executable } } };
    await using server = await PythonServer.start({ normal: working.normal }, options);
    return server.reasonOf("normal");
  };

  it("a missing Python is named", async () => {
    expect(await reasonWith("/not/there/python3")).toMatch(
      /^Internal: cannot start model 'normal' with '\/not\/there\/python3': it could not be started \(spawn .* ENOENT\); install Python/,
    );
  });

  it.skipIf(!hasPython)(`a Python without numpy is reported${withoutPython}`, async () => {
    await using files = await RepositoryOnDisk.create({
      "bin/python3": `#!/bin/sh\nexec ${pythonProgram} -S "$@"\n`,
    });
    await chmod(join(files.path, "bin/python3"), 0o755);
    expect(await reasonWith(join(files.path, "bin/python3"))).toMatch(
      /^Internal: numpy cannot be imported by .*python.* \(Python 3\.\d+\.\d+\): No module named 'numpy'$/,
    );
  });

  it("the exit of a program that is not Python is reported", async () => {
    expect(await reasonWith(process.execPath)).toMatch(/exited with code 1; install Python 3\.8/);
  });
});
