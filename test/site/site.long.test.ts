import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { VERSION } from "@tritonjs/core/internal";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  accessibilityFaults,
  hasBrowser,
  openBrowser,
  openPage,
  overflowOf,
  withoutBrowser,
} from "../support/browser.js";
import { Program } from "../support/program.js";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const dist = join(repository, "site", "dist");
const base = `/v${VERSION.split(".").slice(0, 2).join(".")}/`;
const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".json": "application/json",
  ".woff2": "font/woff2",
};

/** Serves the built files, as a host of static files does. */
async function serveSite(): Promise<{ server: Server; root: string }> {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url!, "http://localhost").pathname);
    const file = join(dist, path.endsWith("/") ? `${path}index.html` : path);
    if (!existsSync(file)) return void response.writeHead(404).end();
    const type = TYPES[extname(file)] ?? "text/plain; charset=utf-8";
    response.writeHead(200, { "content-type": type }).end(readFileSync(file));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, root: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const htmlFiles = () =>
  readdirSync(join(dist, base), { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".html"),
  );

/** The attributes `href` and `src`, and the ids, of a page. */
function linksAndIds(html: string): { links: string[]; ids: Set<string> } {
  const decoded = (text: string) => text.replaceAll("&amp;", "&").replaceAll("&quot;", '"');
  return {
    links: [...html.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, link]) => decoded(link!)),
    ids: new Set([...html.matchAll(/ id="([^"]*)"/g)].map(([, id]) => decoded(id!))),
  };
}

describe("the documentation site", () => {
  let browser: Browser;
  let server: Server;
  let root: string;
  beforeAll(async () => {
    const args = [join(repository, "site", "build.mjs"), "--built"];
    const { code, stderr } = await new Program(process.execPath, args, { cwd: repository }).ended;
    expect(code, stderr).toBe(0);
    if (hasBrowser) browser = await openBrowser();
    ({ server, root } = await serveSite());
  }, 900_000);
  afterAll(async () => {
    await browser?.close();
    server?.close();
  });

  it("has no link to a page, a heading or a file that does not exist", () => {
    const pages = new Map(
      htmlFiles().map((file) => [
        `${base}${file}`,
        linksAndIds(readFileSync(join(dist, base, file), "utf8")),
      ]),
    );
    const broken: string[] = [];
    for (const [page, { links }] of pages) {
      for (const link of links) {
        const { origin, pathname, hash } = new URL(link, `http://site${page}`);
        if (origin !== "http://site") continue;
        const path = pathname.endsWith("/") ? `${pathname}index.html` : pathname;
        const id = decodeURIComponent(hash.slice(1));
        const target = pages.get(path);
        if (!existsSync(join(dist, decodeURIComponent(path)))) broken.push(`${page}: ${link}`);
        else if (id !== "" && target !== undefined && !target.ids.has(id)) broken.push(`${page}: ${link}`);
      }
    }
    expect(broken).toEqual([]);
  });

  it("has a page for each entry of the packages, and each page as Markdown", () => {
    const files = htmlFiles();
    for (const page of [
      "api/core.html",
      "api/backends-onnxruntime.html",
      "api/backends-trees.html",
      "getting-started.html",
    ]) {
      expect(files).toContain(page);
      expect(existsSync(join(dist, base, page.replace(/html$/, "md")))).toBe(true);
    }
    const core = readFileSync(join(dist, base, "api/core.md"), "utf8");
    expect(core).toContain("# @tritonjs/core\n");
    expect(core).toContain("inferSample");
  });

  it("tells language models what there is", () => {
    const index = readFileSync(join(dist, base, "llms.txt"), "utf8");
    expect(index).toMatch(/^# tritonjs\n\n> /);
    const whole = readFileSync(join(dist, base, "llms-full.txt"), "utf8");
    for (const title of ["# Getting started", "# Batching", "# Operations"]) expect(whole).toContain(title);
    const links = [...(index + whole).matchAll(/\]\((\/[^)#]*)/g)].map(([, path]) => path!);
    expect(links.length).toBeGreaterThan(100);
    expect(links.filter((path) => !existsSync(join(dist, path)))).toEqual([]);
  });

  if (!hasBrowser) it.skip(`the site in a browser${withoutBrowser}`, () => {});

  describe.runIf(hasBrowser)("in a browser", () => {
    it("leads from the address without a version to the newest one", async () => {
      const { page } = await openPage(browser, root);
      await page.waitForURL(`${root}${base}`);
      await page.close();
    });

    it("has no complaint of the console on any page", async () => {
      const faults: string[] = [];
      const { page, complaints } = await openPage(browser, `${root}${base}`);
      for (const file of htmlFiles()) {
        // The host of static files answers this page with the status 404.
        if (file === "404.html") continue;
        await page.goto(`${root}${base}${file}`, { waitUntil: "load" });
        await page.locator("#app").waitFor();
        faults.push(...complaints.splice(0).map((text) => `${file}: ${text}`));
      }
      expect(faults).toEqual([]);
      await page.close();
    }, 600_000);

    it.each(["light", "dark"] as const)(
      "has no fault of accessibility that axe finds, in %s",
      async (colorScheme) => {
        for (const file of ["index.html", "batching.html", "performance.html", "api/core.html"]) {
          const { page } = await openPage(browser, `${root}${base}${file}`, { colorScheme });
          expect(await accessibilityFaults(page), file).toEqual([]);
          await page.close();
        }
      },
      600_000,
    );

    it("finds a page by its text without a network", async () => {
      const { page } = await openPage(browser, `${root}${base}`);
      await page
        .context()
        .route("**", (route) => (route.request().url().startsWith(root) ? route.continue() : route.abort()));
      await page.getByRole("button", { name: "Search" }).first().click();
      await page.getByRole("searchbox").fill("max_queue_delay_microseconds");
      const found = page.locator(".results .result").first();
      await found.waitFor();
      await found.click();
      await page.waitForURL(/\.html/);
      await page.close();
    });

    it("begins with a page that says what tritonjs is and where to go", async () => {
      const { page } = await openPage(browser, `${root}${base}`);
      expect(await page.locator("h1").allInnerTexts()).toEqual([expect.stringContaining("Node.js")]);
      await page.getByRole("link", { name: "Getting started" }).last().click();
      await page.waitForURL(/getting-started\.html/);
      await page.close();
    });

    it.each(["timeout", "max batch size", "priority"])(
      "finds guides for '%s' before properties of the API",
      async (text) => {
        const { page } = await openPage(browser, `${root}${base}`);
        await page.getByRole("button", { name: "Search" }).first().click();
        await page.getByRole("searchbox").fill(text);
        const results = page.locator(".results .result");
        await results.first().waitFor();
        const links = await results.evaluateAll((found) => found.map((one) => one.getAttribute("href")!));
        expect(links.slice(0, 5).filter((link) => link.includes("/api/"))).toEqual([]);
        await page.close();
      },
    );

    it("shows whole lines of code in a window of 1440 pixels", async () => {
      const viewport = { width: 1440, height: 900 };
      for (const file of ["index.html", "getting-started.html", "client.html", "api/core.html"]) {
        const { page } = await openPage(browser, `${root}${base}${file}`, { viewport });
        const cut = await page
          .locator("pre")
          .evaluateAll((blocks) => blocks.filter((block) => block.scrollWidth > block.clientWidth).length);
        expect([file, cut]).toEqual([file, 0]);
        await page.close();
      }
    });

    it("fits the window of a phone", async () => {
      const viewport = { width: 390, height: 844 };
      for (const file of ["index.html", "batching.html", "compatibility.html"]) {
        const { page } = await openPage(browser, `${root}${base}${file}`, { viewport });
        expect(await overflowOf(page), file).toBeLessThanOrEqual(0);
        await page.close();
      }
    });
  });
});
