import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { expect, test } from "vitest";
import { hasBrowser, openBrowser, openPage, withoutBrowser } from "../../../../test/support/browser.js";
import { TreeModel } from "../../src/trees/index.js";

const MODELS = [
  "binary.json",
  "multiclass.ubj",
  "categorical.json",
  "lightgbm-zero-as-missing.txt",
  "boosted-multiclass.tl",
];

/** The package as a bundler of an application takes it for a browser. */
async function bundle(): Promise<string> {
  const build = await rolldown({
    input: "@tritonjs/backends/trees",
    cwd: fileURLToPath(new URL(".", import.meta.url)),
    platform: "browser",
  });
  const { output } = await build.generate({ format: "iife", name: "trees" });
  await build.close();
  return output[0].code;
}

test.skipIf(!hasBrowser)(`a page scores rows as Node does, bit by bit${withoutBrowser}`, async () => {
  const code = await bundle();
  const server = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.setHeader("content-security-policy", "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'");
    response.end(`<!doctype html><link rel="icon" href="data:,"><script>${code}</script>`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await openBrowser();
  try {
    const { page, complaints } = await openPage(
      browser,
      `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    );
    for (const file of MODELS) {
      const bytes = readFileSync(new URL(`fixtures/${file}`, import.meta.url));
      const model = new TreeModel({ model: bytes });
      const rows = Float32Array.from({ length: 70 * model.features }, (_, i) =>
        i % 11 === 0 ? Number.NaN : i % 13 === 0 ? Number.POSITIVE_INFINITY : Math.fround(Math.sin(i) * 9),
      );
      const bits = (values: Float32Array) => [...new Int32Array(values.buffer)];
      const asked = { base64: bytes.toString("base64"), bits: bits(rows) };
      const answered = await page.evaluate<number[]>(`(({ base64, bits }) => {
        const model = new trees.TreeModel({ model: Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0)) });
        return [...new Int32Array(model.predict(new Float32Array(Int32Array.from(bits).buffer)).buffer)];
      })(${JSON.stringify(asked)})`);
      expect(answered, file).toEqual(bits(model.predict(rows)));
    }
    const refusal = await page.evaluate<string>(
      `(() => { try { new trees.TreeModel({ model: "fraud.json" }); } catch ({ message }) { return message; } })()`,
    );
    expect(refusal).toBe("model: expected the bytes of a model, got the path 'fraud.json' in a browser");
    expect(complaints).toEqual([]);
  } finally {
    await browser.close();
    server.close();
  }
});
