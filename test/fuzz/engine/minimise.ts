/**
 * Removes as many bytes as possible from an input.
 *
 * @param fails whether an input still shows the fault
 * @param tries most inputs to try
 */
export async function minimise(
  input: Uint8Array,
  fails: (input: Uint8Array) => Promise<boolean>,
  tries = 1500,
): Promise<Uint8Array> {
  let smallest = input;
  let left = tries;
  for (let size = Math.ceil(input.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < smallest.length && left > 0; left--) {
      const shorter = Buffer.concat([smallest.subarray(0, at), smallest.subarray(at + size)]);
      if (await fails(shorter)) smallest = Uint8Array.from(shorter);
      else at += size;
    }
  }
  return smallest;
}
