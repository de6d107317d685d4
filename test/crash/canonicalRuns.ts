/**
 * Twelve runs that cover all parts of a run. Each is data: the user's messages, the model's replies, a person's
 * decisions. Invariant: the model replies by its messages, and the host acts by the conversation's state. So another
 * process can continue the same run.
 */
import { z } from 'zod';
import {
  type Conversation,
  type Decision,
  type DeepPartial,
  defineTool,
  type Json,
  type Message,
  type Model,
  ModelError,
  type ModelPart,
  type PendingCall,
  type Policies,
  type Tool,
  toolResult,
} from '../../src/index.ts';

type Call = [tool: string, m: string];
export interface CanonicalRun {
  name: string;
  /** The second one is sent as a followUp directly after the first. */
  says: readonly string[];
  /** The rounds of calls after the first message. */
  rounds?: readonly (readonly Call[])[];
  decides?: 'approve' | 'deny' | 'edit' | 'answer';
  policies?: DeepPartial<Policies>;
  /** Failed attempts of the first model call. */
  failures?: number;
}

const one = (...calls: Call[]): readonly (readonly Call[])[] => [calls];

export const canonicalRuns: readonly CanonicalRun[] = [
  { name: 'a plain answer', says: ['hi'] },
  { name: 'one tool', says: ['go'], rounds: one(['note', 'a']) },
  {
    name: 'two rounds, two tools at once',
    says: ['go'],
    rounds: [...one(['note', 'a'], ['note', 'b']), [['note', 'c']]],
  },
  {
    name: 'three tools one after the other',
    says: ['go'],
    rounds: one(['note', 'a'], ['note', 'b'], ['note', 'c']),
    policies: { toolExecution: 'sequential' },
  },
  { name: 'a tool that fails', says: ['go'], rounds: one(['boom', 'a']) },
  { name: 'a call that is approved', says: ['go'], rounds: one(['pay', 'a']), decides: 'approve' },
  { name: 'a call that is denied', says: ['go'], rounds: one(['pay', 'a']), decides: 'deny' },
  { name: 'a call that is edited', says: ['go'], rounds: one(['pay', 'a']), decides: 'edit' },
  { name: 'a question that is answered', says: ['go'], rounds: one(['ask', 'a']), decides: 'answer' },
  {
    name: 'a call that waits beside one that does not',
    says: ['go'],
    rounds: one(['note', 'a'], ['pay', 'b']),
    decides: 'approve',
  },
  { name: 'two requests, the second queued', says: ['one', 'two'], rounds: one(['note', 'a']) },
  {
    name: 'an idempotent tool after a failed attempt, and state',
    says: ['go'],
    rounds: one(['fetch', 'a'], ['write', 'b']),
    failures: 1,
  },
];

/** `ran`: called for every execution, with its idempotency key; `did`: called after its effect. */
export function canonicalTools(ran: (key: string) => void, did: () => void = () => {}): Tool[] {
  const parameters = z.object({ m: z.string() });
  const tool = (name: string, act: (m: string, decision?: Decision) => unknown, more: object = {}): Tool =>
    defineTool({
      name,
      description: `Does ${name}.`,
      parameters,
      ...more,
      execute({ m }, { idempotencyKey, decision }) {
        ran(idempotencyKey);
        const answer = act(m, decision);
        did();
        return answer;
      },
    });
  return [
    tool('note', (m) => `noted ${m}`),
    tool('boom', () => Promise.reject(new Error('boom'))),
    tool('pay', (m) => `paid ${m}`, { needsApproval: true }),
    tool('fetch', (m) => `fetched ${m}`, { idempotent: true }),
    tool('write', (m) => toolResult.success(`wrote ${m}`, { state: { [m]: 1 } })),
    tool('ask', (m, decision) =>
      decision?.action === 'answer'
        ? `answered ${m} ${JSON.stringify(decision.payload)}`
        : toolResult.pending({ reason: m }),
    ),
  ];
}

/** The calls of the next round, or none for the final answer. The earlier messages and calls determine it. */
function due({ says, rounds = [] }: CanonicalRun, messages: readonly Message[]): readonly Call[] {
  const saying = messages.filter((message) => message.role === 'user' && says.includes(textOf(message))).at(-1);
  if (saying === undefined || textOf(saying) !== says[0]) return [];
  return rounds[roundsIn(messages)] ?? [];
}
const roundsIn = (messages: readonly Message[]): number =>
  messages.filter((message) => message.role === 'assistant' && message.toolCalls.length > 0).length;
const textOf = ({ content }: Message): string =>
  content.map((part) => (part.type === 'text' ? part.text : '')).join('');

export function canonicalModel(run: CanonicalRun): Model {
  let remainingFailures = run.failures ?? 0;
  return {
    id: 'canonical',
    async *stream({ messages }): AsyncGenerator<ModelPart> {
      if (remainingFailures > 0) {
        remainingFailures -= 1;
        throw new ModelError({ code: 'server', status: 503, retryable: true });
      }
      const calls = due(run, messages);
      // The result is the same after half of the previous reply was lost.
      const round = roundsIn(messages);
      for (const [index, [name, m]] of calls.entries()) {
        yield { type: 'tool-call', callId: `c${round}_${index}`, name, args: JSON.stringify({ m }) };
      }
      if (calls.length === 0) yield { type: 'text-delta', text: 'That is all.' };
      yield { type: 'finish', reason: calls.length > 0 ? 'tool-calls' : 'stop' };
    },
  };
}

const decisionOn = ({ callId, suspension }: PendingCall, action: CanonicalRun['decides']): Decision => {
  const edited: Json = { m: 'edited' };
  if (action === 'edit') return { callId, suspension, action, args: edited };
  if (action === 'answer') return { callId, suspension, action, payload: false };
  return action === 'deny' ? { callId, suspension, action, reason: 'no' } : { callId, suspension, action: 'approve' };
};

/** More than any of the runs needs. */
const MOVES = 20;

/** Continues the run from its current state until nothing remains to do. */
export async function goOn(conversation: Conversation, run: CanonicalRun): Promise<void> {
  for (let move = 0; move < MOVES; move++) {
    const { pending, unsettled, queue, status } = conversation;
    const messageCount = conversation.log().filter(({ type }) => type === 'user-message').length;
    const missing = run.says[messageCount + queue.length];
    const cut = conversation
      .log()
      .filter(({ type }) => type === 'run-stop')
      .at(-1);
    for (const { callId } of unsettled) await conversation.settle(callId, { didNotRun: true });
    for (const call of pending) await conversation.decide(decisionOn(call, run.decides));
    // A run whose request was lost with its start has nothing to continue.
    const isInterrupted = messageCount > 0 && cut?.type === 'run-stop' && cut.reason !== 'completed';
    if (status === 'waiting' || status === 'active' || queue.length > 0 || isInterrupted) {
      await conversation.resume().result;
    } else if (missing !== undefined) {
      const first = conversation.send(missing);
      const second = messageCount === 0 ? run.says[1] : undefined;
      if (second !== undefined) await conversation.send(second, { kind: 'followUp' }).result;
      await first.result;
    } else return;
  }
  throw new Error(`${run.name} has not ended: ${conversation.status}`);
}
