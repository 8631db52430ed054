import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { hasBrowser, openBrowser, openPage, withoutBrowser } from "../support/browser.js";
import { exampleFolder, promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";

const folder = exampleFolder("models-in-a-page");

it("lists what the page loads", async () => {
  const main = join(folder, "dist", "main.js");
  const { code, stdout, stderr } = await Program.node(main, ["--once"], folder).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(promisedOutput("models-in-a-page"));
});

const title = `the page answers in a web worker, also without its server${withoutBrowser}`;
it.skipIf(!hasBrowser)(title, { timeout: 180_000 }, async () => {
  const { openPageServer } = (await import(join(folder, "dist", "page-server.js"))) as {
    openPageServer(port: number): Promise<{ url: string; close(): Promise<void> }>;
  };
  const server = await openPageServer(0);
  const browser = await openBrowser();
  onTestFinished(() => browser.close());
  const { page, complaints } = await openPage(browser, server.url);
  const classify = page.getByRole("button", { name: "Classify" });
  const status = page.getByRole("status");
  await page.waitForSelector("body[data-ready=here]");
  await classify.click();
  await expect.poll(() => status.textContent()).toBe("setosa, 100%, in this page");
  await server.close();
  await page.getByLabel("Measurements").fill("6.3 3.3 6 2.5");
  await classify.click();
  await expect.poll(() => status.textContent()).toMatch(/^virginica, \d+%/);
  await page.getByLabel("Measurements").fill("6.3 3.3");
  await classify.click();
  await expect.poll(() => status.textContent()).toMatch(/input 'measurements'/);
  expect(complaints.filter((text) => !/ERR_CONNECTION_REFUSED/.test(text))).toEqual([]);
});
