import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { hasBrowser, openBrowser, openPage, withoutBrowser } from "../support/browser.js";
import { exampleFolder } from "../support/example-readme.js";

it.skipIf(!hasBrowser)(`the page shows results of the model, and its errors${withoutBrowser}`, async () => {
  const module = join(exampleFolder("browser-and-edge"), "dist", "page-server.js");
  const { openPageServer } = (await import(module)) as {
    openPageServer(port: number): Promise<{ url: string; close(): Promise<void> }>;
  };
  const server = await openPageServer(0);
  onTestFinished(() => server.close());
  const browser = await openBrowser();
  onTestFinished(() => browser.close());
  const { page, complaints } = await openPage(browser, server.url);
  const send = page.getByRole("button", { name: "Send" });
  const status = page.getByRole("status");
  await send.click();
  await expect.poll(() => status.textContent()).toBe("mean 5, deviation 2");
  expect(complaints).toEqual([]);
  await page.getByLabel("Numbers").fill("1 two");
  await send.click();
  await expect.poll(() => status.textContent()).toBe("values: expected finite numbers, got NaN");
});
