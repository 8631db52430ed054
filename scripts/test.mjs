/* `npm test`: installs, builds, lints, type-checks and tests. Arguments go to vitest. */
import { install } from "./install.mjs";
import { build, runNode, tool } from "./run.mjs";

install();
build();
runNode(tool("@biomejs/biome", "bin/biome"), ["check", "--error-on-warnings", "."]);
runNode("scripts/check-imports.mjs");
runNode(tool("vitest", "vitest.mjs"), ["run", ...process.argv.slice(2)]);
