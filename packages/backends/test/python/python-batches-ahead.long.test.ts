import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { serviceOf } from "@tritonjs/server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hasPython, withoutPython } from "../../../../test/support/python.js";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { FLOATS, modelClass, PythonServer } from "./python-server.js";

/** Short batches, after which the process gets several at a time. */
const QUICK = 50;

/** Waits at 1000 until its file exists, dies at 2000, and answers -1 with the number of values below zero that it saw. */
const model = (gate: string) => ({
  config: `${FLOATS}\nparameters [ { key: "gate" value { string_value: "${gate}" } } ]`,
  code: modelClass(`def initialize(self, args):
    self.gate = json.loads(args["model_config"])["parameters"]["gate"]["string_value"]
    self.seen = []
def is_ready(self):
    return True
def execute(self, requests):
    x = x_of(requests[0])[0]
    self.seen.append(x.item())
    if x >= 1000:
        pb_utils.Logger.log_info("waits")
        while not os.path.exists(self.gate):
            time.sleep(0.002)
    if x == 2000:
        os._exit(1)
    if x == -1:
        return [y([value for value in self.seen if value >= 500])]
    return [y([x])]`),
});

describe.skipIf(!hasPython)(`batches that a Python model holds ahead${withoutPython}`, () => {
  let folder: RepositoryOnDisk;
  let server: PythonServer;
  let gate: string;
  beforeEach(async () => {
    folder = await RepositoryOnDisk.create({});
    gate = join(folder.path, "gate");
    server = await PythonServer.start({ m: model(gate) }, { logVerbose: 1 });
    for (let value = 0; value < QUICK; value++) await server.ask("m", value);
  });
  afterEach(async () => {
    await server[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  it("are answered in order", async () => {
    const first = server.ask("m", 1000);
    await server.untilLogged("waits");
    const order: number[] = [];
    const rest = Array.from({ length: 40 }, async (_, value) =>
      order.push((await server.ask("m", value))[0]!),
    );
    await writeFile(gate, "");
    expect(await first).toEqual([1000]);
    await Promise.all(rest);
    expect(order).toEqual(Array.from({ length: 40 }, (_, value) => value));
  });

  it("do not run when their requests are cancelled before their turn", async () => {
    const first = server.ask("m", 1000);
    await server.untilLogged("waits");
    const controller = new AbortController();
    const cancelled = server.triton.infer("m", { X: [500] }, { signal: controller.signal });
    const kept = server.ask("m", 501);
    controller.abort();
    await expect(cancelled).rejects.toMatchObject({ code: "CANCELLED" });
    // The answer comes from the thread that has read the cancellation before.
    expect(await serviceOf(server.triton).checkModelReady("m", "")).toBe(true);
    await writeFile(gate, "");
    expect([await first, await kept]).toEqual([[1000], [501]]);
    expect(await server.ask("m", -1)).toEqual([1000, 501]);
  });

  it("run after a restart when the process dies in the batch before", async () => {
    const first = server.ask("m", 2000);
    const failed = expect(first).rejects.toThrow("is not healthy");
    await server.untilLogged("waits");
    const rest = Promise.all([1, 2, 3].map((value) => server.ask("m", value)));
    await writeFile(gate, "");
    await failed;
    expect(await rest).toEqual([[1], [2], [3]]);
  });
});
