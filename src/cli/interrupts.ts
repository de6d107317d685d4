/**
 * What Ctrl-C does. Rule: the first signal asks for an end, and whoever works ends cleanly; the second one ends the
 * process at once. A reader that went away and a terminal that was closed ask for the same.
 */
export const CANCELLED = 130;

/** Aborted by the first SIGINT, SIGTERM or SIGHUP, or once nobody reads the output. For the life of the process. */
export function interrupts(): AbortSignal {
  const asked = new AbortController();
  const ask = (): void => {
    if (asked.signal.aborted) process.exit(CANCELLED);
    asked.abort();
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, ask);
  // Every write to a broken pipe fails anew, and none of them is a second Ctrl-C.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => asked.abort());
  return asked.signal;
}
