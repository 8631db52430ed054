import { clockTime } from "./format.js";
import { html, useEffect, useRef } from "./preact.js";

/** Seconds that a plot shows. */
const SPAN = 300;

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function options(series, unit, width) {
  const axis = () => ({
    stroke: css("--muted"),
    grid: { stroke: css("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui",
  });
  return {
    width,
    height: 140,
    cursor: { y: false, drag: { setScale: false } },
    legend: { live: true },
    scales: { x: { time: true }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis(), space: 80, size: 30, values: (_, times) => times.map((time) => clockTime(time * 1000)) },
      {
        ...axis(),
        size: 48,
        values: (_, ticks) => ticks.map((tick) => tick.toLocaleString("en", { maximumSignificantDigits: 3 })),
      },
    ],
    series: [
      { value: (_, at) => (at === null ? "" : clockTime(at * 1000)) },
      ...series.map(({ label, color }) => ({
        label,
        stroke: css(color),
        width: 1.5,
        points: { show: false },
        value: (_, value) => (value === null ? "–" : `${value.toPrecision(3)}${unit}`),
      })),
    ],
  };
}

/** A time plot. `series` says which columns of the points it shows, and in which colours. */
export function Chart({ title, unit = "", series, points, columns, scheme }) {
  const place = useRef(null);
  const plot = useRef(undefined);
  useEffect(() => {
    const element = place.current;
    const make = () => {
      plot.current?.destroy();
      plot.current = new globalThis.uPlot(options(series, unit, element.clientWidth), dataOf(), element);
    };
    const dataOf = () => [[], ...series.map(() => [])];
    make();
    const resized = new ResizeObserver(() => {
      if (element.clientWidth > 0) plot.current?.setSize({ width: element.clientWidth, height: 140 });
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.current?.destroy();
    };
  }, [scheme]);
  useEffect(() => {
    const last = points.at(-1)?.[0] ?? Date.now();
    const shown = points.filter(([at]) => at > last - SPAN * 1000);
    const column = (name) => shown.map((point) => point[columns.indexOf(name)]);
    const times = shown.map(([at]) => at / 1000);
    plot.current?.setData([times, ...series.map(({ column: name }) => column(name))]);
  }, [points, scheme]);
  return html`<figure class="chart">
    <figcaption>${title}</figcaption>
    <div ref=${place} role="img" aria-label=${`${title} over the last minutes`}></div>
  </figure>`;
}

/** Bars with their names and numbers; they need no plot. */
export function Bars({ title, rows, empty }) {
  const most = Math.max(1, ...rows.map(({ value }) => value));
  return html`<section class="card">
    <h3>${title}</h3>
    ${rows.length === 0 && html`<p class="muted">${empty}</p>`}
    <table class="bars">
      <tbody>
        ${rows.map(
          ({ name, value, note }) => html`<tr>
            <th scope="row" title=${note}>${name}</th>
            <td class="bar"><meter min="0" max=${most} value=${value}></meter></td>
            <td class="number">${value.toLocaleString("en")}</td>
          </tr>`,
        )}
      </tbody>
    </table>
  </section>`;
}
