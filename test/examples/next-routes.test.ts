import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type CurlLine, curlLines } from "../support/curl-line.js";
import { exampleFolder, readExampleReadme } from "../support/example-readme.js";
import { irisModel } from "../support/iris.js";

type Route = Record<string, (request: Request) => Promise<Response>>;

const folder = exampleFolder("mount-next");
const lines = curlLines(readExampleReadme("mount-next"));

describe("the route handlers of the Next.js example", () => {
  let flowers: Route;
  let v2: Route;
  beforeAll(async () => {
    // Next starts an application in its folder.
    vi.spyOn(process, "cwd").mockReturnValue(folder);
    flowers = await import(join(folder, "app/api/flowers/route.ts"));
    v2 = await import(join(folder, "app/v2/[...path]/route.ts"));
  });
  afterAll(async () => {
    const { inference } = await import(join(folder, "inference.ts"));
    await inference().triton.close();
    vi.restoreAllMocks();
  });

  const answer = ({ path, init }: Pick<CurlLine, "path" | "init">) =>
    (path.startsWith("/api/flowers") ? flowers : v2)[init.method ?? "GET"]!(
      new Request(`http://localhost:3000${path}`, init),
    );

  it.each(lines)("answer $line", async ({ status, text, ...line }) => {
    const response = await answer(line);
    expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(text)]);
  });

  it("keep the models when a hot reload evaluates their module again", async () => {
    const { inference } = await import(join(folder, "inference.ts"));
    vi.resetModules();
    const reloaded = await import(join(folder, "inference.ts"));
    expect(reloaded.inference).not.toBe(inference);
    expect(reloaded.inference()).toBe(inference());
  });

  it("run in the process of the server, and never at build time", () => {
    for (const route of [flowers, v2] as unknown as Record<string, string>[]) {
      expect([route.runtime, route.dynamic]).toEqual(["nodejs", "force-dynamic"]);
    }
  });
});

describe("the Next.js example", () => {
  it("keeps the packages that the routes use out of the bundle", async () => {
    const { default: config } = await import(join(folder, "next.config.mjs"));
    const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    expect(Object.keys(dependencies)).toEqual(expect.arrayContaining(config.serverExternalPackages));
  });

  it("contains the model of the quick start", () => {
    expect(readFileSync(join(folder, "models/iris.onnx")).equals(readFileSync(irisModel))).toBe(true);
  });
});
