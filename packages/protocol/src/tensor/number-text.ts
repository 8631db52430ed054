/**
 * A double as Triton prints it: whole numbers end in `.0`, the exponent has no plus, and `NaN`, `Infinity` and
 * `-Infinity` stand as they are.
 */
export function doubleText(value: number): string {
  if (Number.isInteger(value)) {
    if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
    const text = String(value);
    return text.includes("e") ? text.replace("+", "") : `${text}.0`;
  }
  const text = String(value);
  return text.includes("+") ? text.replace("+", "") : text;
}

/** A number of which only the value is known: whole numbers are integers. */
export function numberText(value: number | bigint): string {
  return typeof value === "bigint" || Number.isSafeInteger(value) ? String(value) : doubleText(value);
}
