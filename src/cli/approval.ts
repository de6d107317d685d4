/**
 * Asks a person about calls that wait. Rule: the call is shown whole, as it would run; only a clear yes approves, and
 * the end of the input is no answer.
 */
import { createInterface } from 'node:readline';
import type { Conversation } from '../conversation/conversation.ts';
import type { PendingCall } from '../index.ts';
import type { Screen } from './screen.ts';

type Answer = { action: 'approve' | 'deny'; by: string } | 'later';
const BY = 'terminal';
/** Answers for one call. */
export type Asker = (call: PendingCall) => Promise<Answer>;

const ANSWERS = new Map<string, Answer>([
  ['y', { action: 'approve', by: BY }],
  ['yes', { action: 'approve', by: BY }],
  ['n', { action: 'deny', by: BY }],
  ['no', { action: 'deny', by: BY }],
  ['l', 'later'],
  ['later', 'later'],
]);

/** Asks on the terminal that standard input is. `signal` ends the question with `later`. */
export function terminalAsker(screen: Screen, signal: AbortSignal): Asker {
  return async () => {
    // Without `terminal` the line discipline keeps Ctrl-C, which then is a signal like any other.
    const lines = createInterface({ input: process.stdin, terminal: false });
    const end = (): void => lines.close();
    signal.addEventListener('abort', end);
    try {
      const ask = (): void => screen.question(['bold', '  approve? [y]es, [n]o, [l]ater:']);
      if (signal.aborted) return 'later';
      ask();
      for await (const line of lines) {
        const answer = ANSWERS.get(line.trim().toLowerCase());
        if (answer) return answer;
        ask();
      }
      return 'later';
    } finally {
      signal.removeEventListener('abort', end);
      lines.close();
    }
  };
}

/** The call as it would run, nothing left out. */
export function showCall(screen: Screen, { name, args, reason }: PendingCall): void {
  screen.line(['yellow', '? '], ['bold', name], ['plain', ` waits for a decision (${reason}). It would run with`]);
  for (const line of JSON.stringify(args, null, 2).split('\n')) screen.line(['plain', `    ${line}`]);
}

/** Asks about every call that waits; answers how many are left undecided. */
export async function decidePending(conversation: Conversation, screen: Screen, ask: Asker): Promise<number> {
  for (const call of conversation.pending) {
    showCall(screen, call);
    const answer = await ask(call);
    if (answer === 'later') break;
    await conversation.decide({ callId: call.callId, suspension: call.suspension, ...answer });
  }
  return conversation.pending.length;
}
