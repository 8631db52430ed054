import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { axisScale, REPORT_STYLE } from "../../../src/report/html-chart.js";
import { htmlReport } from "../../../src/report/html-report.js";
import { concurrency, levelOf, RUN, requests, serverOf } from "../support/report-run.js";

const results = [1, 2].map((value) =>
  levelOf(concurrency(value), requests(value * 50, value * 10), { server: serverOf(value * 50) }),
);

describe("the HTML report", () => {
  it("is one file without scripts that loads nothing", () => {
    const page = htmlReport(results, RUN, []);
    expect(page).not.toMatch(/<script|<link|<img|<iframe|@import|url\(|\son\w+=|\sstyle=/i);
    expect(page.match(/https?:\/\//g)).toBeNull();
  });

  it("has a policy that allows its own style sheet only", () => {
    const page = htmlReport(results, RUN, []);
    const style = /<style>([\s\S]*?)<\/style>/.exec(page)![1]!;
    const hash = createHash("sha256").update(style).digest("base64");
    expect(page).toContain(`style-src &#39;sha256-${hash}&#39;`);
    expect(page).toContain("default-src &#39;none&#39;");
  });

  it("can be read in light and in dark mode: text and lines contrast with what is behind them", () => {
    const [light = "", dark = ""] = [...REPORT_STYLE.matchAll(/:root \{[^}]*\}/g)].map(([rule]) => rule);
    for (const rule of [light, dark]) {
      const colors = new Map(
        [...rule.matchAll(/--(\w+): (#\w+)/g)].map(([, name, color]) => [name!, color!]),
      );
      for (const name of ["text", "quiet", "s1", "s2", "s3", "s4", "s5", "s6", "s7"]) {
        for (const behind of ["ground", "panel"]) {
          const contrast = contrastOf(colors.get(name)!, colors.get(behind)!);
          const least = name === "text" || name === "quiet" || name === "s2" ? 4.5 : 3;
          expect(contrast, `${name} on ${behind}`).toBeGreaterThan(least);
        }
      }
    }
  });

  it("escapes every text that comes from outside", () => {
    const evil = '<img src=x onerror="alert(1)">';
    const level = levelOf(concurrency(1), [{ sent: 0, end: 5 }], { phase: evil });
    const page = htmlReport([level], { ...RUN, model: evil, url: evil, command: evil, toolVersion: evil }, [
      evil,
    ]);
    expect(page).not.toContain("<img");
    expect(page).toContain("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;");
  });

  it("names the fault of a level", () => {
    const fault = { kind: "all failed", text: "every request failed: gone" } as const;
    const page = htmlReport([levelOf(concurrency(2), [], { fault })], RUN, []);
    expect(page).toContain("concurrency 2: every request failed: gone");
  });

  it("closes every element that it opens", () => {
    const open: string[] = [];
    const page = htmlReport(results, RUN, ["careful"]).replace(/<!doctype html>|<meta[^>]*>/g, "");
    for (const [, slash, name] of page.matchAll(/<(\/?)([a-z][\w-]*)[^>]*>/gi)) {
      if (slash === "/") expect(open.pop()).toBe(name);
      else open.push(name!);
    }
    expect(open).toEqual([]);
  });

  it("draws a chart of latency, of the server, of each distribution, and of the time", () => {
    const page = htmlReport(results, RUN, []);
    for (const label of [
      "Latency against throughput",
      "Time of a request in the server",
      "Distribution of the latencies at concurrency 1",
      "Distribution of the latencies at concurrency 2",
      "inferences per second over time",
      "latency in ms over time",
    ]) {
      expect(page).toContain(`aria-label="${label}"`);
    }
    expect(page).not.toContain("NaN");
  });

  it("can show a run without any request", () => {
    const page = htmlReport([levelOf(concurrency(1), [])], RUN, []);
    expect(page).toContain("Performance of m");
    expect(page).not.toContain("NaN");
  });
});

describe("an axis", () => {
  it("begins at 0 and has round ticks up to the largest value", () => {
    expect(axisScale([3, 97], 0, 100).ticks).toEqual([0, 20, 40, 60, 80, 100]);
    expect(axisScale([0.31], 0, 100).ticks.at(-1)).toBeGreaterThanOrEqual(0.31);
    expect(axisScale([], 0, 100).ticks).toEqual([0, 0.2]);
    expect(axisScale([10], 200, 0).positionOf(5)).toBe(100);
  });
});

/** Contrast of two colours by the rule of WCAG 2, from 1 to 21. */
function contrastOf(a: string, b: string): number {
  const [dark, light] = [luminanceOf(a), luminanceOf(b)].toSorted((one, other) => one - other);
  return (light! + 0.05) / (dark! + 0.05);
}

function luminanceOf(color: string): number {
  const digits =
    color.length === 4 ? [...color.slice(1)].map((digit) => digit + digit) : color.slice(1).match(/../g)!;
  const [red, green, blue] = digits.map((pair) => {
    const share = Number.parseInt(pair, 16) / 255;
    return share <= 0.040_45 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}
