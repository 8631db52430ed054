import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { Program } from "../../../../test/support/program.js";
import { repositoryRoot } from "../../../../test/support/repository.js";

const fixture = (name: string) =>
  new URL(`../../../core/test/behaviours/fixtures/${name}.mjs`, import.meta.url);

/** The program's output closes, and so its end is reported, only when all processes that it started are gone. */
function start(what: string, module: string): Program {
  const program = fileURLToPath(fixture("serves-in-a-process"));
  return Program.node(program, [what, fixture(module).href], repositoryRoot);
}

describe("a child process", () => {
  it("ends when its parent is killed", async () => {
    const program = start("idle", "misbehaves");
    await program.untilOutput("serving");
    program.signal("SIGKILL");
    expect((await program.ended).signal).toBe("SIGKILL");
  });

  it("ends when its parent is killed during an endless loop", async () => {
    const program = start("loop", "misbehaves");
    await program.untilOutput("serving");
    program.signal("SIGKILL");
    expect((await program.ended).signal).toBe("SIGKILL");
  });

  it("ends when its parent exits without closing", async () => {
    expect((await start("exit", "misbehaves").ended).code).toBe(0);
  });

  it("writes any amount to the output of its parent and still gets its answers through", async () => {
    const { code, stdout, stderr } = await start("flood", "floods-stdout").ended;
    expect({ code, stderr, written: stdout.length }).toEqual({
      code: 0,
      stderr: "answered 5\n",
      written: 5_000_000,
    });
  });
});
