/**
 * The state of the page without a browser, connected to a server that the test plays. Invariant: each bench loads its
 * own modules, as each load of the page does.
 */
import { vi } from 'vitest';
import type { LogEntry } from '../../../machines/index.ts';
import type { ToPage } from '../../../src/inspect/wire.ts';

type Body<Entry = LogEntry> = Entry extends LogEntry ? Omit<Entry, 'seq' | 'at' | 'conversationId' | 'runId'> : never;

/** The entries of a log, one millisecond apart, of one run unless another is named. */
export const logOf = (conversationId: string, bodies: readonly (Body & { runId?: string | null })[], began = 0) =>
  bodies.map(
    (body, seq): LogEntry => ({ seq, at: began + seq, conversationId, runId: 'run', ...body }) as unknown as LogEntry,
  );

export const conversationEntry = { type: 'conversation', schema: 1, cwd: '/', createdAt: 0, runId: null } as const;

/** A request whose one call waits for a person. */
export const waitingLog = (conversationId: string, callId = 'call_0', began = 0): LogEntry[] =>
  logOf(
    conversationId,
    [
      conversationEntry,
      { type: 'run-started' },
      { type: 'user-message', messageId: 'm', kind: 'direct', content: [{ type: 'text', text: 'Take a note' }] },
      { type: 'checkpoint', boundary: 'UserMessage' },
      { type: 'agent-output', item: { type: 'tool-call', callId, name: 'note', args: { text: 'a' } } },
      { type: 'tool-suspended', callId, suspension: 1, reason: 'permission' },
      { type: 'run-suspended', waiting: [callId] },
      { type: 'checkpoint', boundary: 'RunFinished' },
    ],
    began,
  );

interface Asked {
  type: string;
  ask: number;
  conversation?: string;
  [field: string]: unknown;
}

/** A connected page; `server` plays its server. */
export async function pageBench() {
  vi.resetModules();
  const page = { hidden: false, documentElement: { toggleAttribute: () => false } };
  vi.stubGlobal('innerWidth', 1440).stubGlobal('innerHeight', 900).stubGlobal('document', page);
  vi.stubGlobal('location', { host: 'test' });
  vi.stubGlobal('requestAnimationFrame', (draw: () => void) => draw());
  const store = await import('../../../inspector/state/pageState.ts');
  const deciding = await import('../../../inspector/state/decisionCards.ts');
  const live = await import('../../../inspector/state/serverConnection.ts');
  let asked: Asked[] = [];
  let handlers = { open() {}, frame(_: string) {}, closed() {} };
  let dials = 0;
  live.connect((line) => {
    handlers = line;
    dials += 1;
    return { send: (text) => void asked.push(JSON.parse(text) as Asked), close() {} };
  }, 'test');
  let n = 0;
  const server = {
    /** Requests of the page that were not read yet. */
    take(): Asked[] {
      const taken = asked;
      asked = [];
      return taken;
    },
    get dials() {
      return dials;
    },
    say: (...messages: ToPage[]) => handlers.frame(JSON.stringify(messages)),
    greet(session = 's', from = 0, next = n) {
      handlers.open();
      server.say({ type: 'hello', wire: 1, version: '0', session, control: true, from, next, dropped: 0 });
    },
    /** Another server has its own numbers. */
    restart: () => {
      n = 0;
    },
    conversation(id: string, status: 'waiting' | 'active' | 'idle' = 'waiting') {
      server.say({ n: n++, at: 0, type: 'conversation', conversation: id, of: 'runchart' });
      server.say({ n: n++, at: 0, type: 'status', conversation: id, status });
    },
    entries(id: string, entries: readonly LogEntry[], more: { cut?: true } = {}) {
      for (const entry of entries) server.say({ n: n++, at: 0, type: 'entry', conversation: id, entry, ...more });
    },
    answer: ({ ask }: Asked, value: { receipt: string } | { runId: string } | { status: string }) =>
      server.say({ type: 'answer', ask, value }),
    drop: () => handlers.closed(),
  };
  return { ...store, ...deciding, server };
}
