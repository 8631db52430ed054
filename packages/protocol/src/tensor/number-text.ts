/**
 * Formats a double as Triton does: whole numbers end in `.0`, the exponent has no plus, and `NaN`, `Infinity` and
 * `-Infinity` are written as such.
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

/** Formats a number without a known type: whole numbers are integers. */
export function numberText(value: number | bigint): string {
  return typeof value === "bigint" || Number.isSafeInteger(value) ? String(value) : doubleText(value);
}
