/**
 * The handle of a request that has run: its nodes, its messages, its answer (agent-loop-contract 1.1, 4). Rule: all of it is
 * read off the log of the run.
 */
import {
  type LogEntry,
  type Message,
  nextState,
  responseEventOf,
  responseStateMachine,
} from '../../machines/internal.ts';
import type { Node } from './nodes.ts';

export interface AgentRun extends AsyncIterable<Node> {
  responseState: { state: 'USER_INPUT' | 'ASSISTANT' | 'TOOL_EXECUTION' | 'RESPONSE'; taskCompleted: boolean };
  /** Those that the request began with, and its own. */
  allMessages(): Message[];
  /** Null where the request ended without an answer: a limit was reached, or a call waited for somebody. */
  result: { output: string } | null;
}

/** How far a request has come, as its chart says. */
export function responseStateOf(entries: readonly LogEntry[]): AgentRun['responseState'] {
  let { state } = nextState(responseStateMachine, undefined, {});
  for (const entry of entries) {
    const event = responseEventOf(entry);
    if (event) state = nextState(responseStateMachine, state, event).state;
  }
  const { value } = state as { value: AgentRun['responseState']['state'] | { RESPONSE: 'Open' | 'Completed' } };
  if (typeof value === 'string') return { state: value, taskCompleted: false };
  return { state: 'RESPONSE', taskCompleted: value.RESPONSE === 'Completed' };
}

/** For the model in words; for a program beside them, under a name that no provider has. */
const INTERRUPTED = '[INTERRUPTED]\n\n';
const MARK = { provider: 'runchart', flag: 'interrupted' };

/** Whether the words that a log ends with are those of a reply that was cut off. */
function endsInterrupted(entries: readonly LogEntry[]): boolean {
  const last = entries.filter(({ type }) => type === 'agent-output' || type === 'tool-result').at(-1);
  return last?.type === 'agent-output' && last.item.type === 'assistant' && last.item.flag === 'interrupted';
}

/** Messages of a log for the session: a reply that was cut off says so, since its flag is in the log alone. */
export function sessionMessages(messages: readonly Message[], entries: readonly LogEntry[]): Message[] {
  const last = messages.at(-1);
  if (last?.role !== 'assistant' || !endsInterrupted(entries)) return [...messages];
  const [first, ...others] = last.content;
  const marked = first?.type === 'text' ? { ...first, text: `${INTERRUPTED}${first.text}` } : first;
  return [...messages.slice(0, -1), { ...last, content: marked ? [marked, ...others] : [], extra: MARK }];
}

/** The handle of these entries. */
export function agentRun(entries: readonly LogEntry[], nodes: readonly Node[], messages: readonly Message[]): AgentRun {
  return {
    responseState: responseStateOf(entries),
    result: nodes.at(-1)?.result ?? null,
    allMessages: () => [...messages],
    async *[Symbol.asyncIterator]() {
      yield* nodes;
    },
  };
}
