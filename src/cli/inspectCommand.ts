/**
 * The inspector at the command line: `runchart inspect <log>`, and `--inspect` of commands that run something. Rule: its
 * address is told on standard error, since it is no result; a stored log is read as far as it can be, and never written.
 */
import { once } from 'node:events';
import { basename } from 'node:path';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { Agent } from '../agent.ts';
import { type Inspector, type InspectorOptions, startLogInspector } from '../inspect/inspector.ts';
import { findLog, readStored } from './replay/readLog.ts';
import { outputTo, printable } from './screen.ts';
import { sessionsDirectory } from './sessions/sessionStore.ts';

export interface InspectOptions {
  store?: string;
  port?: string;
  open?: boolean;
}

/** Shows the log until the signal is aborted, and answers the exit code. Rejects with ConfigurationError. */
export async function inspectCommand(given: string, options: InspectOptions, signal: AbortSignal): Promise<number> {
  const path = await findLog(given, sessionsDirectory(options.store));
  const name = basename(path);
  const entries: LogEntry[] = [];
  const unread = await readStored(path, (value) => {
    if (typeof value !== 'object' || value === null) return;
    // Events of another backend have neither numbers nor times.
    const own = { seq: entries.length, at: 0, conversationId: name, runId: null };
    entries.push({ ...own, ...value } as LogEntry);
  });
  const port = options.port === undefined ? {} : { port: Number(options.port) };
  const inspector = await startLogInspector({ ...port, open: options.open === true });
  try {
    inspector.show(name, entries, unread);
    sayWhere(inspector);
    if (!signal.aborted) await once(signal, 'abort');
    return 0;
  } finally {
    await inspector.close();
  }
}

function sayWhere({ url }: Inspector): void {
  outputTo(process.stderr).write(`inspector ${printable(url)}\n`);
}

/** An agent that can be watched; it takes its inspector with it when it is closed. */
export async function inspectedAgent(
  options: InspectorOptions,
  make: (inspect: Inspector['observe']) => Agent,
): Promise<Agent> {
  const inspector = await startLogInspector(options);
  sayWhere(inspector);
  const agent = make(inspector.observe);
  return {
    profile: agent.profile,
    open: (id, opening) => agent.open(id, opening),
    list: () => agent.list(),
    run: (content, running) => agent.run(content, running),
    async close() {
      await agent.close();
      await inspector.close();
    },
  };
}
