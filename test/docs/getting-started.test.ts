import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../support/repository.js";
import { PROGRAMS, page } from "./getting-started-page.js";

/* The programs of the page run with the packed packages: `test/package/tutorial.long.test.ts`. */
describe("the page that new users start from", () => {
  it("has its programs run by the tutorial's tests, except for the module that they share", () => {
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
