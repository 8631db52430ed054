import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

/** Paths of Chromium on Linux and macOS. */
const PLACES = [
  process.env.TRITONJS_CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

const executablePath = PLACES.find((path) => path !== undefined && existsSync(path));

/** Whether a Chromium is installed; `TRITONJS_CHROMIUM` names one that lies elsewhere. */
export const hasBrowser = executablePath !== undefined;

/** Part of the name of a test that is skipped for lack of a browser. */
export const withoutBrowser = hasBrowser ? "" : " (skipped: no Chromium is installed)";

/** A busy machine starts a browser and draws a page in seconds, so a limit only ends a test that hangs. */
const BUSY_MS = 100_000;

export function openBrowser(args: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: executablePath!,
    timeout: BUSY_MS,
    args: ["--no-sandbox", "--disable-dev-shm-usage", ...args],
  });
}

/** A page that keeps what its console and the content security policy complain of. */
export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(BUSY_MS);
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", ({ message }) => complaints.push(message));
  await page.goto(url);
  return { page, complaints };
}

/** Pixels by which a page is wider than its window. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate("document.documentElement.scrollWidth - window.innerWidth");
}

/** Faults of accessibility that axe finds on a page, each with its rule and the begin of its element. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  // Evaluated by the debugger, which a content security policy does not concern.
  await page.evaluate(axe);
  return page.evaluate<string[]>(
    `axe.run().then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html.slice(0, 120))))`,
  );
}
