import { readdirSync, readlinkSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasPython, withoutPython } from "../../../../test/support/python.js";
import { FLOATS, modelClass, PythonServer } from "./python-server.js";

const linux = process.platform === "linux";

/** More than the places that a process has for inputs. */
const MANY = 20;
const LARGE = 10_000;

const models = {
  echo: {
    code: modelClass("def execute(self, requests):\n    return [y(x_of(request)) for request in requests]"),
  },
  doubles_in_place: {
    code: modelClass(`def execute(self, requests):
    for request in requests:
        values = x_of(request)
        values *= 2
    return [y(x_of(request)) for request in requests]`),
  },
  // Answers 1 if the input lies in memory that is shared with the server, and all inputs that it keeps are unchanged.
  keeps: {
    code: modelClass(`def initialize(self, args):
    self.kept = []
def shares(self, array):
    for line in open("/proc/self/maps"):
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        if first <= array.ctypes.data < last:
            return "memfd:tritonjs" in line
def execute(self, requests):
    x = x_of(requests[0])
    if x[0] == 0:
        self.kept.clear()
    elif x[0] > 0:
        self.kept.append((x[0].item(), x))
    intact = all((array == value).all() for value, array in self.kept)
    return [y([self.shares(x), intact])]`),
  },
  // The process that it forks at 1 reads its input at 3.
  forks: {
    code: modelClass(`def execute(self, requests):
    x = x_of(requests[0])
    if x[0] == 1:
        reader, self.writer = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            os.read(reader, 1)
            os._exit(7 if (x == 1).all() else 8)
    if x[0] == 3:
        os.write(self.writer, b".")
        return [y([os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])])]
    return [y([0])]`),
  },
  calls: {
    code: modelClass(`def execute(self, requests):
    x = pb_utils.get_input_tensor_by_name(requests[0], "X")
    answer = pb_utils.InferenceRequest(model_name="echo", requested_output_names=["Y"], inputs=[x]).exec()
    got = pb_utils.get_output_tensor_by_name(answer, "Y").as_numpy()
    return [y(got + 1)]`),
  },
  dies: {
    code: modelClass(`def execute(self, requests):
    if x_of(requests[0])[0] < 0:
        os._exit(1)
    return [y(x_of(requests[0]))]`),
  },
};

/** Open files in memory of this process. */
function openFiles(): number {
  const links = readdirSync("/proc/self/fd").map((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`);
    } catch {
      return "";
    }
  });
  return links.filter((link) => link.includes("memfd:tritonjs")).length;
}

describe.skipIf(!hasPython)(`large tensors of Python models${withoutPython}`, () => {
  let server: PythonServer;
  beforeAll(async () => {
    server = await PythonServer.start({ ...models, ...(linux ? {} : { keeps: models.echo }) });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const ask = async (name: string, values: Float32Array) => {
    const { Y } = await server.triton.infer<string>(name, { X: values });
    return (Y as { data: Float32Array }).data;
  };
  const large = (value: number) => new Float32Array(LARGE).fill(value);

  it.each([8191, 8192, 1_000_003, 9_000_001])("are answered with %d numbers", async (size) => {
    const sent = new Float32Array(size).map((_, at) => at % 8191);
    expect(Buffer.compare(Buffer.from((await ask("echo", sent)).buffer), Buffer.from(sent.buffer))).toBe(0);
  });

  it("keep their own bytes when many are sent at once", async () => {
    const answers = await Promise.all(Array.from({ length: 3 * MANY }, (_, at) => ask("echo", large(at))));
    expect(answers.map((answer) => [...new Set(answer)])).toEqual(answers.map((_, at) => [at]));
  });

  it("can be changed in place", async () => {
    expect(new Set(await ask("doubles_in_place", large(4)))).toEqual(new Set([8]));
  });

  it("are passed between models", async () => {
    expect(new Set(await ask("calls", large(4)))).toEqual(new Set([5]));
  });

  it.skipIf(!linux)("lie in shared memory, and stay unchanged while the model keeps them", async () => {
    const shared: number[] = [];
    for (let value = 1; value <= MANY; value++) {
      const [isShared, intact] = await ask("keeps", large(value));
      shared.push(isShared!);
      expect(intact).toBe(1);
    }
    // The last ones find no place, and come over the connection.
    expect([shared[0], shared.at(-1)]).toEqual([1, 0]);
    await ask("keeps", large(0));
    expect([...(await ask("keeps", large(-1)))]).toEqual([1, 1]);
  });

  it.skipIf(!linux)("stay unchanged in processes that the model forks", async () => {
    await ask("forks", large(1));
    for (let sent = 0; sent < MANY; sent++) await ask("forks", large(2));
    expect([...(await ask("forks", large(3)))]).toEqual([7]);
  });

  it.skipIf(!linux)("leave no file open when their process ends", async () => {
    const before = openFiles();
    expect(before).toBe(2 * Object.keys(models).length);
    await expect(ask("dies", large(-1))).rejects.toThrow("is not healthy");
    expect(new Set(await ask("dies", large(1)))).toEqual(new Set([1]));
    expect(openFiles()).toBe(before);
  });
});

describe.skipIf(!hasPython || !linux)(`memory of Python models after close()${withoutPython}`, () => {
  it("is closed", async () => {
    const before = openFiles();
    const server = await PythonServer.start({ echo: { ...models.echo, config: FLOATS } });
    expect(openFiles()).toBe(before + 2);
    await server[Symbol.asyncDispose]();
    expect(openFiles()).toBe(before);
  });
});
