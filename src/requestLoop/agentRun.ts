/**
 * The handle of a request: its nodes, its messages, its answer (docs/internals/contracts.md, 1.1 and 4). Invariant:
 * everything is read from the log of the run.
 */
import {
  type LogEntry,
  type Message,
  nextState,
  responseEventOf,
  responseStateMachine,
} from '../../machines/internal.ts';
import type { Node } from './nodes.ts';

/** A running request: an async iterable of its nodes. */
export interface AgentRun extends AsyncIterable<Node> {
  /** The progress of the request, as an interface shows it. */
  responseState: { state: 'USER_INPUT' | 'ASSISTANT' | 'TOOL_EXECUTION' | 'RESPONSE'; taskCompleted: boolean };
  /** The messages at the start of the request, and its own. */
  allMessages(): Message[];
  /** Null if the request ended without an answer: a limit was reached, or a call was suspended. */
  result: { output: string } | null;
}

/** Returns the state of a request, computed by its chart. */
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

/** The prefix is for the model. The mark is for programs, under a name that no provider has. */
const INTERRUPTED = '[INTERRUPTED]\n\n';
const MARK = { provider: 'runchart', flag: 'interrupted' };

/** Returns true if the last reply of the log was interrupted. */
function endsInterrupted(entries: readonly LogEntry[]): boolean {
  const last = entries.filter(({ type }) => type === 'agent-output' || type === 'tool-result').at(-1);
  return last?.type === 'agent-output' && last.item.type === 'assistant' && last.item.flag === 'interrupted';
}

/** Returns the session's messages. An interrupted reply is marked, because only the log has its flag. */
export function sessionMessages(messages: readonly Message[], entries: readonly LogEntry[]): Message[] {
  const last = messages.at(-1);
  if (last?.role !== 'assistant' || !endsInterrupted(entries)) return [...messages];
  const [first, ...others] = last.content;
  const marked = first?.type === 'text' ? { ...first, text: `${INTERRUPTED}${first.text}` } : first;
  return [...messages.slice(0, -1), { ...last, content: marked ? [marked, ...others] : [], extra: MARK }];
}

/** Makes the handle from these entries. */
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
