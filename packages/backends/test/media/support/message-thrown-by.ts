/** Code and message of the error that a call throws. */
export function messageThrownBy(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return code === undefined ? message : `${code} ${message}`;
  }
  return "nothing was thrown";
}
