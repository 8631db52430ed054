/** The style sheet of the report. Colours follow the reader's choice of light or dark. */
export const REPORT_STYLE = `
:root { color-scheme: light dark; --text: #1c2024; --quiet: #60646c; --ground: #fff; --line: #d9d9e0; --panel: #f7f7f8;
  --s1: #2563eb; --s2: #b45309; --s3: #dc2626; --s4: #059669; --s5: #7c3aed; --s6: #0891b2; --s7: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --text: #edeef0; --quiet: #b0b4ba; --ground: #18191b; --line: #393a40;
  --panel: #212225; --s1: #70a5ff; --s2: #f5b54a; --s3: #ff7b72; --s4: #4ade80; --s5: #b794f6; --s6: #4cc9e0; --s7: #8b8d98; } }
body { margin: 0 auto; padding: 24px; max-width: 1080px; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 24px; margin: 0; } h2 { font-size: 18px; margin: 32px 0 8px; }
p { color: var(--quiet); margin: 4px 0; } code { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 10px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--quiet); font-weight: 500; } th:first-child, td:first-child, td:last-child { text-align: left; } td:last-child { white-space: normal; min-width: 7em; }
figure { margin: 8px 0; padding: 8px; background: var(--panel); border-radius: 8px; } svg { width: 100%; height: auto; }
.grid { stroke: var(--line); } .tick, .axis { fill: var(--quiet); font-size: 12px; }
.line { fill: none; stroke: currentColor; stroke-width: 2; } .dot { fill: currentColor; stroke: currentColor; stroke-width: 2; }
.hollow { fill: var(--panel); } .bar { fill: currentColor; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; list-style: none; margin: 0; padding: 0 8px; font-size: 13px; }
.legend li::before { content: "\\25CF\\00A0"; }
.series-1 { color: var(--s1); } .series-2 { color: var(--s2); } .series-3 { color: var(--s3); } .series-4 { color: var(--s4); }
.series-5 { color: var(--s5); } .series-6 { color: var(--s6); } .series-7 { color: var(--s7); }
.warning { color: var(--s2); }
`;
