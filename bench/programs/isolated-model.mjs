/* A model that computes for the first number of its input, in milliseconds, and returns its input. */
export default ([{ inputs }]) => {
  const end = performance.now() + inputs.x.get(0);
  while (performance.now() < end);
  return [{ y: inputs.x }];
};
