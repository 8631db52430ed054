/* pnpm runs this before it installs the workspace. Another major version would rewrite the lockfile. */
import { PNPM } from "./install.mjs";

const [given] = (process.env.npm_config_user_agent ?? "").split(" ");
const majorOf = (name, separator) => name.split(separator)[1]?.split(".")[0];
if (given.startsWith("pnpm/") && majorOf(given, "/") !== majorOf(PNPM, "@")) {
  console.error(
    `this workspace is installed by ${PNPM}, got ${given.replace("/", "@")}: run \`npm run build\`, which brings it, or \`npx ${PNPM} install\``,
  );
  process.exit(1);
}
