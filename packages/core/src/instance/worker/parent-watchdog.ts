/* A thread of a child process that ends it when its parent is gone, also while the model runs without a pause. */

const LOOK_EVERY_MS = 500;
const parent = process.ppid;

setInterval(() => {
  if (process.ppid !== parent) process.kill(process.pid, "SIGKILL");
}, LOOK_EVERY_MS);
