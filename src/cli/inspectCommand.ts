/**
 * The inspector at the command line: `runchart inspect <log>`, and `--inspect` of other commands. Invariant: its
 * address goes to standard error, because it is not a result. A stored log is read up to the first unreadable part, and
 * is never written.
 */
import { once } from 'node:events';
import { unusableField } from '../../machines/internal.ts';
import type { LogEntry } from '../../machines/vocabulary.ts';
import type { Agent } from '../agent.ts';
import { type Inspector, type InspectorOptions, startLogInspector } from '../inspect/inspector.ts';
import { printable } from '../printable.ts';
import { separateItems } from '../projector/readEntry.ts';
import { portIn } from '../transports/nodeHandler.ts';
import { findLog } from './replay/readLog.ts';
import { outputTo } from './screen.ts';
import { sessionPlace } from './sessions/sessionPlace.ts';

export interface InspectOptions {
  store?: string;
  port?: string;
  open?: boolean;
}

/** Shows the log until the signal is aborted. Resolves to the exit code, or rejects with ConfigurationError. */
export async function inspectCommand(log: string, options: InspectOptions, signal: AbortSignal): Promise<number> {
  const port = options.port === undefined ? {} : { port: portIn(options.port) };
  const place = await sessionPlace(options.store);
  const { name, read } = await findLog(log, place);
  const entries: LogEntry[] = [];
  const unusable: string[] = [];
  const unread = await read((value) => {
    if (typeof value !== 'object' || value === null) return;
    for (const event of separateItems(value)) {
      // Events of another backend have neither numbers nor times.
      const entry = { seq: entries.length, at: 0, conversationId: name, runId: null, ...event } as LogEntry;
      const field = unusableField(entry);
      if (field === undefined) entries.push(entry);
      else unusable.push(`entry ${entry.seq} (${entry.type}): its ${field} cannot be used`);
    }
  });
  await place.close();
  const inspector = await startLogInspector({ ...port, open: options.open === true });
  try {
    inspector.show(name, entries, [...unread, ...unusable]);
    printAddress(inspector);
    if (!signal.aborted) await once(signal, 'abort');
    return 0;
  } finally {
    await inspector.close();
  }
}

function printAddress({ url }: Inspector): void {
  outputTo(process.stderr).write(`inspector ${printable(url)}\n`);
}

/** Returns an agent that can be inspected. Closing it closes its inspector too. */
export async function inspectedAgent(
  options: InspectorOptions,
  make: (inspect: Inspector['observe']) => Agent,
): Promise<Agent> {
  const inspector = await startLogInspector(options);
  printAddress(inspector);
  const agent = make(inspector.observe);
  return {
    profile: agent.profile,
    open: (id, opening) => agent.open(id, opening),
    list: (options) => agent.list(options),
    run: (content, running) => agent.run(content, running),
    async close() {
      await agent.close();
      await inspector.close();
    },
  };
}
