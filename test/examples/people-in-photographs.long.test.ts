import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { exampleFolder, promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

describe("the example that finds people in photographs", () => {
  it("counts the people of each photograph, and runs the network once for each", async () => {
    const main = join(exampleFolder("people-in-photographs"), "dist", "main.js");
    const { code, stdout, stderr } = await Program.node(main, [], repositoryRoot).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(promisedOutput("people-in-photographs"));
  });
});
