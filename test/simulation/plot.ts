/** A line of a plot. */
export interface Series {
  readonly name: string;
  readonly color: string;
  readonly dash?: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** A plot of lines over a common axis, from 0 to 1 upwards. */
export interface Panel {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly xMax: number;
  readonly series: readonly Series[];
}

const WIDTH = 420;
const HEIGHT = 260;
const LEFT = 52;
const TOP = 34;
const PLOT_WIDTH = WIDTH - LEFT - 14;
const PLOT_HEIGHT = HEIGHT - TOP - 46;
const LEGEND_HEIGHT = 30;

/** Panels side by side with one legend, as an SVG document that reads on light and dark pages. */
export function svg(panels: readonly Panel[]): string {
  const width = WIDTH * panels.length;
  const height = HEIGHT + LEGEND_HEIGHT;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...panels.map((panel, i) => `<g transform="translate(${i * WIDTH} 0)">\n${panelBody(panel)}\n</g>`),
    legend(panels[0]!.series, HEIGHT + 12),
    "</svg>",
  ];
  return `${parts.join("\n")}\n`;
}

function panelBody({ title, xLabel, yLabel, xMax, series }: Panel): string {
  const x = (value: number) => (LEFT + (PLOT_WIDTH * value) / xMax).toFixed(1);
  const y = (value: number) => (TOP + PLOT_HEIGHT * (1 - value)).toFixed(1);
  const lines = [`<text x="${LEFT}" y="18" font-weight="bold">${title}</text>`];
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
    lines.push(`<path d="M${LEFT} ${y(tick)}h${PLOT_WIDTH}" stroke="#ddd"/>`);
    lines.push(`<text x="${LEFT - 6}" y="${Number(y(tick)) + 4}" text-anchor="end">${100 * tick}%</text>`);
    const at = tick * xMax;
    lines.push(
      `<text x="${x(at)}" y="${TOP + PLOT_HEIGHT + 16}" text-anchor="middle">${Math.round(at)}</text>`,
    );
  }
  lines.push(`<text x="${LEFT + PLOT_WIDTH / 2}" y="${HEIGHT - 10}" text-anchor="middle">${xLabel}</text>`);
  const middle = TOP + PLOT_HEIGHT / 2;
  lines.push(`<text transform="translate(12 ${middle}) rotate(-90)" text-anchor="middle">${yLabel}</text>`);
  for (const { color, dash, points } of series) {
    const path = points.map(([px, py], i) => `${i === 0 ? "M" : "L"}${x(px)} ${y(py)}`).join("");
    const style = dash === undefined ? "" : ` stroke-dasharray="${dash}"`;
    lines.push(`<path d="${path}" fill="none" stroke="${color}" stroke-width="2"${style}/>`);
  }
  return lines.join("\n");
}

function legend(series: readonly Series[], y: number): string {
  return series
    .map(({ name, color, dash }, i) => {
      const left = LEFT + i * 150;
      const style = dash === undefined ? "" : ` stroke-dasharray="${dash}"`;
      const line = `<path d="M${left} ${y - 4}h24" stroke="${color}" stroke-width="2"${style}/>`;
      return `${line}<text x="${left + 30}" y="${y}">${name}</text>`;
    })
    .join("\n");
}
