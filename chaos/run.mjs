/*
 * `npm run chaos -- --minutes 10 --seed 1`: real servers under mixed load and faults. Exits with 1 if a request did not
 * end as it must, or if something was left behind. docs/reliability.md says what is checked.
 */
import { writeFileSync } from "node:fs";
import { chaosRun } from "./chaos-run.mjs";
import { readOptions } from "./options.mjs";
import { printReport } from "./report.mjs";

const options = readOptions(process.argv.slice(2));
const report = await chaosRun(options, options.quiet ? () => {} : (line) => console.log(line));
if (options.report !== undefined) writeFileSync(options.report, `${JSON.stringify(report, null, 2)}\n`);
printReport(report, (line) => console.log(line));
process.exit(report.faults.length === 0 ? 0 : 1);
