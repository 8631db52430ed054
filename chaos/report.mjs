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
