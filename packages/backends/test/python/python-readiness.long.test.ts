import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { hasPython, withoutPython } from "../../../../test/support/python.js";
import { modelClass, PythonServer } from "./python-server.js";

const EXECUTE = "def execute(self, requests):\n    return [y(x_of(request)) for request in requests]";

const tells = (methods: string) => ({ code: modelClass(`${methods}\n${EXECUTE}`) });

const models = {
  silent: tells("pass"),
  ready: tells("def is_ready(self):\n    return True"),
  not_ready: tells("def is_ready(self):\n    return False"),
  raises: tells('def is_ready(self):\n    raise ValueError("no connection")'),
  mumbles: tells('def is_ready(self):\n    return "ready"'),
  awaits: tells("async def is_ready(self):\n    import asyncio\n    await asyncio.sleep(0)\n    return True"),
  asks: {
    code: modelClass(`def execute(self, requests):
    return [y([pb_utils.is_model_ready(name) for name in ("ready", "not_ready", "silent", "nobody")])]`),
  },
};

describe.skipIf(!hasPython)(`is_ready of Python models${withoutPython}`, () => {
  let server: PythonServer;
  beforeAll(async () => {
    server = await PythonServer.start(models, { logVerbose: 1 });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  it.each([
    ["silent", true],
    ["ready", true],
    ["awaits", true],
    ["not_ready", false],
    ["raises", false],
    ["mumbles", false],
  ])("decides whether a model is ready: %s", async (name, ready) => {
    const service = serviceOf(server.triton);
    expect(await service.checkModelReady(name, "")).toBe(ready);
    expect(await service.checkModelReady(name, "1")).toBe(ready);
    expect(await service.checkModelReady(name, "2")).toBe(false);
    // Requests are not affected by it.
    expect(await server.ask(name, 1)).toEqual([1]);
  });

  it("logs the reason for not being ready", () => {
    const whyNot = (name: string) =>
      server.lines.find((line) => line.startsWith(`Model '${name}' version 1`));
    expect(whyNot("not_ready")).toBe(
      "Model 'not_ready' version 1 is not ready: Model 'not_ready_0' is not ready (user-defined check failed).",
    );
    expect(whyNot("raises")).toContain("is not ready: ValueError: no connection\n\nAt:\n");
    expect(whyNot("mumbles")).toContain("is not ready: is_ready() must return a boolean value");
  });

  it("decides whether the server is ready, unless strict readiness is off", async () => {
    expect(serviceOf(server.triton).isReady()).toBe(true);
    expect(await serviceOf(server.triton).checkReady()).toBe(false);
    const { ready, not_ready } = models;
    await using good = await PythonServer.start({ ready });
    expect(await serviceOf(good.triton).checkReady()).toBe(true);
    await using lax = await PythonServer.start({ not_ready }, { strictReadiness: false });
    expect(await serviceOf(lax.triton).checkReady()).toBe(true);
  });

  it("is visible to other models", async () => {
    expect(await server.ask("asks", 0)).toEqual([1, 0, 1, 0]);
  });
});

describe.skipIf(!hasPython)(`a slow is_ready${withoutPython}`, () => {
  const slow = {
    code: modelClass(`def initialize(self, args):
    self.go = threading.Event()
    self.asked = 0
def is_ready(self):
    self.asked += 1
    pb_utils.Logger.log_info("was asked")
    self.go.wait()
    return True
def execute(self, requests):
    self.go.set()
    return [y([self.asked])]`),
  };

  it("means not ready after five seconds, and runs once for all concurrent questions", async () => {
    const clock = new VirtualClock();
    await using server = await PythonServer.start({ slow }, { clock });
    const service = serviceOf(server.triton);
    const first = service.checkModelReady("slow", "");
    await server.untilLogged("was asked");
    await clock.advance(4000);
    const second = service.checkModelReady("slow", "");
    await clock.advance(1000);
    expect(await first).toBe(false);
    // The batch does not wait for is_ready, and ends it.
    const asked = server.triton.infer<string>("slow", { X: [0] });
    expect(await second).toBe(true);
    expect([...((await asked).Y as { data: Float32Array }).data]).toEqual([1]);
  });

  it("means not ready when the process is gone", async () => {
    const dies = {
      code: modelClass(`def is_ready(self):
    os._exit(3)
${EXECUTE}`),
    };
    await using server = await PythonServer.start({ dies });
    expect(await serviceOf(server.triton).checkModelReady("dies", "")).toBe(false);
  });
});

describe.skipIf(!hasPython)(`a Python model that crashes${withoutPython}`, () => {
  const REFUSE_LOADING = "TRITONJS_TEST_REFUSE_LOADING";
  const dies = {
    code: modelClass(`def initialize(self, args):
    if "${REFUSE_LOADING}" in os.environ:
        raise ValueError("the weights are gone")
def execute(self, requests):
    os._exit(3)`),
  };

  it("keeps its server ready, and is not ready itself once it cannot be restarted", async () => {
    onTestFinished(() => {
      delete process.env[REFUSE_LOADING];
    });
    const clock = new VirtualClock();
    await using server = await PythonServer.start({ dies }, { clock });
    const service = serviceOf(server.triton);
    const seen = async () => [
      await service.checkReady(),
      await service.checkModelReady("dies", ""),
      (await service.repositoryIndex(false))[0]?.state,
    ];
    process.env[REFUSE_LOADING] = "1";
    await expect(server.ask("dies", 1)).rejects.toThrow("exited with code 3");
    expect(await seen()).toEqual([true, true, "READY"]);
    while (await service.checkModelReady("dies", "")) await clock.advance(100);
    expect(await seen()).toEqual([true, false, "UNAVAILABLE"]);
    expect(await service.metrics()).toMatch(/^tritonjs_instance_restarts_total\{.*\} [1-9]/m);
  });
});
