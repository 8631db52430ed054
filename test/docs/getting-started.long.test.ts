import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repositoryRoot } from "../support/repository.js";
import { PROGRAMS, page, ReadersProject } from "./getting-started-page.js";

/** The project is inside the example that has the frameworks of the page. */
const folder = join(
  repositoryRoot,
  "examples/mount-fetch/node_modules/.cache",
  `getting-started-${process.pid}`,
);

describe("the page that new users start from", () => {
  let project: ReadersProject;
  beforeAll(() => {
    project = new ReadersProject(folder);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it.each(PROGRAMS.scripts)("has a program %s that prints what the page promises", (name) =>
    project.expectOutput(name),
  );

  it.each(PROGRAMS.servers)(
    "has a server %s that answers as the page promises, and drains on SIGTERM",
    (name) => project.expectServer(name),
  );

  it("runs each of its programs, except for the module that they share", () => {
    const { all, scripts, servers, clients } = PROGRAMS;
    expect({ scripts, servers, clients }).toEqual({
      scripts: ["first", "batches", "flowers", "checks", "stream", "ensemble", "watch"].map(toFile),
      servers: ["fastify", "express", "hono", "serve"].map(toFile),
      clients: ["client.mjs"],
    });
    const run = new Set([...scripts, ...servers, ...clients]);
    expect([...all.keys()].filter((name) => !run.has(name))).toEqual(["models.mjs"]);
  });

  it("quotes the examples of Nest and Next.js as they are", () => {
    const quotes = [...page.matchAll(/^```typescript\n\/\/ (\S+)\n(.*?)^```$/gms)];
    expect(quotes.length).toBeGreaterThan(4);
    for (const [, file, code] of quotes) {
      expect(readFileSync(join(repositoryRoot, file!), "utf8")).toContain(code);
    }
  });
});

function toFile(name: string): string {
  return `${name}.mjs`;
}
