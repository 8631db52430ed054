/*
 * `npm run chaos -- --minutes 10 --seed 1`: real servers under mixed load and faults. Exits with 1 if a request did not
 * end as it must, or if something was left behind. docs/reliability.md says what is checked.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { chaosRun } from "./chaos-run.mjs";

/**
 * Options of `npm run chaos`.
 *
 * @throws Error for an invalid option
 */
export function readOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: "string", default: "2" },
      seed: { type: "string", default: "1" },
      report: { type: "string" },
      logs: { type: "string" },
      quiet: { type: "boolean", default: false },
    },
  });
  return {
    minutes: number("minutes", values.minutes, (value) => value > 0),
    seed: number("seed", values.seed, Number.isSafeInteger),
    report: values.report,
    logs: values.logs,
    quiet: values.quiet,
  };
}

function number(name, text, isValid) {
  const value = Number(text);
  if (text === "" || !isValid(value)) throw new Error(`--${name}: expected a number, got '${text}'`);
  return value;
}

/** Faults of one kind that are shown. */
const MOST_SHOWN = 40;

/** Writes what a run did and found, as tables of Markdown. */
export function printReport(report, write) {
  const { seed, minutes, skipped, requests, excuses, events, memory, heap, faults, last } = report;
  write(`\nseed ${seed}, ${minutes} minutes`);
  for (const what of skipped) write(`skipped: ${what}`);
  write("\n| protocol | requests | right | failed | left |\n|---|---|---|---|---|");
  const sums = { sent: 0, right: 0, failed: 0, left: 0 };
  for (const [protocol, counts] of Object.entries(requests)) {
    for (const key of Object.keys(sums)) sums[key] += counts[key];
    write(`| ${protocol} | ${counts.sent} | ${counts.right} | ${counts.failed} | ${counts.left} |`);
  }
  write(`| all | ${sums.sent} | ${sums.right} | ${sums.failed} | ${sums.left} |`);
  table(write, "cause of a failure", excuses);
  table(write, "event", events);
  table(write, "requests that ended with their server", last);
  for (const [server, { own, all, course }] of Object.entries(memory)) {
    const text = ({ from, to, ratio }) => `${from.toFixed(0)} to ${to.toFixed(0)} MiB (${ratio.toFixed(3)})`;
    write(`\nmemory of ${server}: ${text(own)}; with its processes ${text(all)}`);
    write(`its course: ${course.join(", ")}`);
  }
  write(`heap of program: ${heap.from.toFixed(1)} to ${heap.to.toFixed(1)} MiB`);
  write(faults.length === 0 ? "\nno faults" : `\n${faults.length} faults:`);
  for (const fault of faults.slice(0, MOST_SHOWN)) write(`- ${fault}`);
}

function table(write, title, counts) {
  write(`\n| ${title} | count |\n|---|---|`);
  for (const [name, count] of Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)))
    write(`| ${name} | ${count} |`);
}

const options = readOptions(process.argv.slice(2));
const report = await chaosRun(options, options.quiet ? () => {} : (line) => console.log(line));
if (options.report !== undefined) writeFileSync(options.report, `${JSON.stringify(report, null, 2)}\n`);
printReport(report, (line) => console.log(line));
process.exit(report.faults.length === 0 ? 0 : 1);
