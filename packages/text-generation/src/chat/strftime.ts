const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

/** Codes of Python's `strftime` that templates use, in local time and in English whatever the machine's language. */
const CODES: Record<string, (date: Date) => string> = {
  Y: (date) => String(date.getFullYear()),
  y: (date) => digits(date.getFullYear() % 100),
  m: (date) => digits(date.getMonth() + 1),
  d: (date) => digits(date.getDate()),
  e: (date) => String(date.getDate()).padStart(2),
  j: (date) => digits(dayOfYear(date), 3),
  H: (date) => digits(date.getHours()),
  I: (date) => digits(date.getHours() % 12 || 12),
  M: (date) => digits(date.getMinutes()),
  S: (date) => digits(date.getSeconds()),
  p: (date) => (date.getHours() < 12 ? "AM" : "PM"),
  A: (date) => DAYS[date.getDay()] as string,
  a: (date) => (DAYS[date.getDay()] as string).slice(0, 3),
  B: (date) => MONTHS[date.getMonth()] as string,
  b: (date) => (MONTHS[date.getMonth()] as string).slice(0, 3),
  "%": () => "%",
};

/** Formats a date as Python's `strftime` does. A code that it does not know stays as it is, as in C. */
export function strftime(date: Date, format: string): string {
  return format.replace(/%([a-zA-Z%])/g, (text, code: string) => {
    if (code === "F") return strftime(date, "%Y-%m-%d");
    if (code === "T") return strftime(date, "%H:%M:%S");
    return CODES[code]?.(date) ?? text;
  });
}

function digits(value: number, length = 2): string {
  return String(value).padStart(length, "0");
}

function dayOfYear(date: Date): number {
  const first = Date.UTC(date.getFullYear(), 0, 1);
  return (Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) - first) / 86_400_000 + 1;
}
