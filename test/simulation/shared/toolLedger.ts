/**
 * The tools of every process, and a record of their executions. Invariant: a call that is not idempotent is executed once, and once more
 * for each requested retry. No call is executed before the entry that permits it is durable.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import { defineTool, type Tool, type ToolContext } from '../../../src/tools/tool.ts';
import { textSchema } from '../agent/simulatedTools.ts';
import type { ProcessWorld, SharedWorld } from './sharedWorld.ts';

const KINDS = { note: {}, fetch: { idempotent: true }, pay: { needsApproval: true } } as const;

interface Execution {
  count: number;
  readonly keys: Set<string>;
}

export class ToolLedger {
  readonly #shared: SharedWorld;
  readonly #executions = new Map<string, Execution>();
  readonly #logOf: (id: string) => readonly LogEntry[];

  constructor(shared: SharedWorld, logOf: (id: string) => readonly LogEntry[]) {
    this.#shared = shared;
    this.#logOf = logOf;
  }

  begin(name: string, isIdempotent: boolean, { conversationId, callId, idempotencyKey }: ToolContext): void {
    const id = `${conversationId} ${callId}`;
    const execution = this.#executions.get(id) ?? { count: 0, keys: new Set<string>() };
    this.#executions.set(id, execution);
    execution.count += 1;
    execution.keys.add(idempotencyKey);
    const entries = this.#logOf(conversationId).filter((entry) => 'callId' in entry && entry.callId === callId);
    const starts = entries.filter(({ type }) => type === 'tool-started').length;
    const retries = entries.filter((entry) => entry.type === 'call-settled' && 'retry' in entry.how).length;
    const most = isIdempotent ? starts : 1 + retries;
    const what = `${name} ${id}`;
    this.#shared.check(starts > 0, 'I9', () => `${what} is executed before its start is durable`);
    this.#shared.check(
      execution.count <= most,
      'I10',
      () => `${what} is executed ${execution.count} times, ${retries} retries`,
    );
    this.#shared.check(execution.keys.size <= 1 + retries, 'I10', () => `${what} has the keys ${[...execution.keys]}`);
  }
}

export function sharedTools(world: ProcessWorld, ledger: ToolLedger): Tool[] {
  return Object.entries(KINDS).map(([name, kind]) =>
    defineTool({
      ...kind,
      name,
      description: `A simulated tool, ${name}.`,
      parameters: textSchema,
      async execute({ text }: { text: string }, context: ToolContext) {
        ledger.begin(name, 'idempotent' in kind, context);
        await world.wait('tool');
        if (world.fault('tool', world.profile.model)) throw new Error('the tool broke');
        return `${name} has done ${text}`;
      },
    }),
  );
}
