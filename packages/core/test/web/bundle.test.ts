import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { describe, expect, it } from "vitest";
import { WEB_CORE_BUNDLE } from "../../../../test/package/size-budgets.js";
import { repositoryRoot } from "../../../../test/support/repository.js";

describe("bundle", () => {
  it("the core for the web is small, and has nothing of Node in it", async () => {
    const build = await rolldown({
      input: join(repositoryRoot, "packages", "core", "dist", "web.js"),
      platform: "browser",
      resolve: { conditionNames: ["browser", "import", "default"] },
    });
    const { output } = await build.generate({ format: "esm", minify: true });
    await build.close();
    expect(output).toHaveLength(1);
    const { code, imports } = output[0];
    expect(imports).toEqual([]);
    expect(code).not.toMatch(/["']node:/);
    const { minifiedKilobytes, gzippedKilobytes } = WEB_CORE_BUNDLE;
    expect(code.length / 1e3).toBeLessThan(minifiedKilobytes);
    expect(gzipSync(code, { level: 9 }).length / 1e3).toBeLessThan(gzippedKilobytes);
    const page = await readFile(join(repositoryRoot, "docs", "web.md"), "utf8");
    expect(page).toContain(`${minifiedKilobytes} kB minified, ${gzippedKilobytes} kB with gzip`);
  });
});
