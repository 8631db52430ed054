/** Files that a server has open at a time, at least: code is read many files at a time when it starts. */
const NEEDED = 256;

/** What to do about it, with room for connections. */
const SUGGESTED = 4096;

const CODES: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE"]);

/**
 * The line to show for an error that comes of too few open files; undefined for any other error. Imports nothing,
 * because what it would import may be what cannot be opened.
 */
export function descriptorFault(error: unknown): string | undefined {
  const limit = openFilesLimit();
  // A module that cannot be opened is sometimes called missing.
  const isTight = limit !== undefined && limit < NEEDED;
  if (!isOutOfDescriptors(error) && !(isTight && isMissingModule(error))) return undefined;
  const allowed = limit === undefined ? "" : `: this process may have ${limit}`;
  return `error: too many open files${allowed}; raise the limit, for instance with 'ulimit -n ${SUGGESTED}'`;
}

function isOutOfDescriptors(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (CODES.has((one as NodeJS.ErrnoException).code) || /\bE[MN]FILE\b/.test(one.message)) return true;
  }
  return false;
}

function isMissingModule(error: unknown): boolean {
  const { code } = (error ?? {}) as NodeJS.ErrnoException;
  return code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
}

/** How many files the process may have open, where the system says so. Needs none to find out. */
function openFilesLimit(): number | undefined {
  try {
    // Else it asks for the names of all addresses at hand. Its types leave it out.
    Object.assign(process.report, { excludeNetwork: true });
    const { userLimits } = process.report.getReport() as ReportedLimits;
    const limit = Number(userLimits?.open_files?.soft);
    return Number.isFinite(limit) ? limit : undefined;
  } catch {
    return undefined;
  }
}

interface ReportedLimits {
  readonly userLimits?: { readonly open_files?: { readonly soft: number | string } };
}
