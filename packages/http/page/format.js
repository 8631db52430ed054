/* Numbers and times as people read them. */

export const number = (value, digits = 1) =>
  value === null || value === undefined || Number.isNaN(value)
    ? "–"
    : value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 10 ? digits : 0 });

export function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1) return `${number(value * 1000, 0)} µs`;
  return value < 1000 ? `${number(value)} ms` : `${number(value / 1000)} s`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let size = value;
  for (; size >= 1024 && unit < units.length - 1; unit++) size /= 1024;
  return `${number(size)} ${units[unit]}`;
}

export const percent = (share) =>
  share === null || share === undefined ? "–" : `${number(share * 100, 0)}%`;

export const clockTime = (at) => new Date(at).toLocaleTimeString("en-GB");

/** Mean time of a duration of the statistics, in milliseconds. */
export const mean = ({ count, ns }) => (count === 0 ? null : ns / count / 1e6);
