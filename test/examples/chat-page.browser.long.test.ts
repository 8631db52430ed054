import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { hasBrowser, openBrowser, openPage, withoutBrowser } from "../support/browser.js";
import { exampleFolder } from "../support/example-readme.js";

it.skipIf(!hasBrowser)(`the chat page shows a streamed answer, and stops it${withoutBrowser}`, async () => {
  const module = join(exampleFolder("chat-page"), "dist", "chat-server.js");
  const { openChatServer } = (await import(module)) as {
    openChatServer(port: number): Promise<{ url: string; close(): Promise<void> }>;
  };
  const server = await openChatServer(0);
  onTestFinished(() => server.close());
  const browser = await openBrowser();
  onTestFinished(() => browser.close());
  const { page, complaints } = await openPage(browser, server.url);
  const answers = page.locator(".assistant");
  const [send, stop] = ["Send", "Stop"].map((name) => page.getByRole("button", { name }));
  await send!.click();
  await expect.poll(() => answers.first().textContent()).toMatch(/^Once there was a \w+ \w+/);
  await expect.poll(() => send!.isEnabled()).toBe(true);
  await page.getByLabel("Question").fill("Write a story about a blue dog!");
  await send!.click();
  await stop!.click().catch(() => {});
  await expect.poll(() => send!.isEnabled()).toBe(true);
  expect(await page.locator(".error").count()).toBe(0);
  expect(complaints).toEqual([]);
});
