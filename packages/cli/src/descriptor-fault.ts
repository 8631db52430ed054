/** Fewest open files that a server needs. At the start it reads many files of code at the same time. */
const NEEDED = 256;

/** Limit that the message suggests, with room for connections. */
const SUGGESTED = 4096;

const CODES: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE"]);

/** Node 26 gives no code when it cannot open a `package.json`. */
const TEXTS = /\bE[MN]FILE\b|too many open files/;

/**
 * Message for an error caused by too few open files; undefined for any other error. This file has no imports, because
 * an import may fail for the same reason.
 */
export function descriptorFault(error: unknown): string | undefined {
  const limit = openFilesLimit();
  // A module that cannot be opened is sometimes reported as missing.
  const isTight = limit !== undefined && limit < NEEDED;
  if (!isOutOfDescriptors(error) && !(isTight && isMissingModule(error))) return undefined;
  const allowed = limit === undefined ? "" : `: this process may have ${limit}`;
  return `error: too many open files${allowed}; raise the limit, for instance with 'ulimit -n ${SUGGESTED}'`;
}

function isOutOfDescriptors(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (CODES.has((one as NodeJS.ErrnoException).code) || TEXTS.test(one.message)) return true;
  }
  return false;
}

function isMissingModule(error: unknown): boolean {
  const { code } = (error ?? {}) as NodeJS.ErrnoException;
  return code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
}

/** Limit on open files of the process, where the system reports it. Finding out opens no file. */
function openFilesLimit(): number | undefined {
  try {
    // Without this, the report resolves the names of all network addresses. Node's types leave the option out.
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
