/* Watchdog thread that ends a child process when its parent is gone, even while the model runs without a pause. */

const LOOK_EVERY_MS = 500;
const parent = process.ppid;

setInterval(() => {
  if (process.ppid !== parent) process.kill(process.pid, "SIGKILL");
}, LOOK_EVERY_MS);
