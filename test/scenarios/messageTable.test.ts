/**
 * A message of each kind, in each state of a conversation, under each policy about messages: its outcome. Invariant:
 * the expected outcomes are written by hand, from the rules about queues and statuses. Every combination is tried
 * through the public API.
 */
import { describe, expect, it } from 'vitest';
import { type AgentOptions, type LogEntry, ModelError, RunchartError } from '../../src/index.ts';
import { type Bench, bench } from '../support/agentBench.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, type Reply } from '../support/scriptedReplies.ts';
import { volume } from '../support/tier.ts';
import { troubledStore } from '../support/troubledStore.ts';

type Policies = NonNullable<AgentOptions['policies']>;
type Ending = 'completed' | 'interrupted' | 'error';

const KINDS = ['send', 'steer', 'followUp'] as const;
const WHILE_ACTIVE = ['reject', 'steer', 'followUp'] as const;
const WHILE_SUSPENDED = ['reject', 'followUp', 'denyAndRun'] as const;
const ENDINGS: readonly Ending[] = ['completed', 'interrupted', 'error'];
const PROMOTIONS: readonly (readonly Ending[])[] = [0, 1, 2, 3, 4, 5, 6, 7].map((bits) =>
  ENDINGS.filter((_, at) => bits & (1 << at)),
);

interface Choice {
  kind: (typeof KINDS)[number];
  whileActive: (typeof WHILE_ACTIVE)[number];
  whileSuspended: (typeof WHILE_SUSPENDED)[number];
  promoteFollowUpOn: readonly Ending[];
}
const CHOICES: readonly Choice[] = KINDS.flatMap((kind) =>
  WHILE_ACTIVE.flatMap((whileActive) =>
    WHILE_SUSPENDED.flatMap((whileSuspended) =>
      PROMOTIONS.map((promoteFollowUpOn) => ({ kind, whileActive, whileSuspended, promoteFollowUpOn })),
    ),
  ),
);

/** The outcome of the message `X`, which is sent after `P`. */
type Fate =
  | 'refused: agent_busy'
  | 'refused: cancellation_in_progress'
  | 'its own cycle at once'
  | 'a steer in the cycle of P'
  | 'a followUp in its own cycle, when P has ended'
  | 'queued as a steer'
  | 'queued as a followUp';

const textOf = (item: Extract<LogEntry, { type: 'user-message' }>): string =>
  item.content.map((part) => (part.type === 'text' ? part.text : '')).join('');

/** Read from the log, the queue and the view. */
function fateOf({ conversation }: Bench): Fate | string {
  const [queued] = conversation.queue;
  if (queued) return `queued as a ${queued.kind}`;
  const messages = conversation.log().flatMap((item) => (item.type === 'user-message' ? [item] : []));
  const counted = messages.filter((item) => textOf(item) === 'X');
  if (counted.length !== 1) return `counted ${counted.length} times`;
  const { cycles } = conversation.view();
  const at = cycles.findIndex(({ steps }) =>
    steps.some((step) => 'messageId' in step && step.messageId === counted[0]?.messageId),
  );
  const isRoot = cycles[at]?.root.messageId === counted[0]?.messageId;
  if (isRoot && counted[0]?.kind === 'direct') return 'its own cycle at once';
  if (isRoot && at > 0 && cycles[at - 1]?.stop) return 'a followUp in its own cycle, when P has ended';
  return !isRoot && at === 0 && counted[0]?.kind === 'steer'
    ? 'a steer in the cycle of P'
    : `in cycle ${at} as ${counted[0]?.kind}`;
}

/** The error code of a refused message; undefined for an accepted one. */
function sendAndCatch({ conversation }: Bench, kind: Choice['kind']): string | undefined {
  try {
    conversation[kind]('X');
    return undefined;
  } catch (error) {
    return RunchartError.isRunchartError(error) ? `refused: ${error.code}` : String(error);
  }
}

/** A reply that the test releases. */
function held() {
  let give = (_: Error | undefined): void => undefined;
  let asked = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const reply: Reply = async function* (_request, { signal }) {
    asked();
    await new Promise<void>((resolve, reject) => {
      give = (error) => (error ? reject(error) : resolve());
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    yield { type: 'text-delta', text: 'P is done' };
    yield { type: 'finish', reason: 'stop' };
  };
  return { reply, begun, give: (error?: Error) => give(error) };
}

const policiesOf = ({ whileActive, whileSuspended, promoteFollowUpOn }: Choice): Policies => ({
  whileActive,
  whileSuspended,
  promoteFollowUpOn,
});
const dies = (): ModelError => new ModelError({ code: 'auth', message: 'no key' });

async function settled(on: Bench): Promise<void> {
  for (let round = 0; round < 40 && on.conversation.status === 'active'; round++) await on.clock.advance(10);
}

const replies: readonly Reply[] = ['one', 'two', 'three'];

async function idle(choice: Choice, before: 'idle' | 'error'): Promise<string> {
  const on = await bench({ replies: before === 'idle' ? replies : [dies(), ...replies], policies: policiesOf(choice) });
  if (before === 'error') await on.conversation.send('P').result;
  expect(on.conversation.status).toBe(before);
  const refusal = sendAndCatch(on, choice.kind);
  await settled(on);
  return refusal ?? fateOf(on);
}

async function active(choice: Choice, ending: Ending): Promise<string> {
  const first = held();
  const on = await bench({ replies: [first.reply, ...replies], policies: policiesOf(choice) });
  const run = on.conversation.send('P');
  await first.begun;
  expect(on.conversation.status).toBe('active');
  const refusal = sendAndCatch(on, choice.kind);
  if (ending === 'interrupted') await on.clock.until(run.cancel());
  else first.give(ending === 'error' ? dies() : undefined);
  await run.result;
  await settled(on);
  return refusal ?? fateOf(on);
}

async function cancelling(choice: Choice): Promise<string> {
  const store = troubledStore({ synchronous: false });
  const first = held();
  let free = (): void => undefined;
  const after = new Promise<void>((resolve) => {
    free = resolve;
  });
  const on = await bench({ replies: [first.reply, ...replies], store, policies: policiesOf(choice) });
  const run = on.conversation.send('P');
  await first.begun;
  store.trouble((entries) => (entries.some(({ type }) => type === 'run-stop') ? { after } : 'stored'));
  void on.conversation.cancel();
  await on.clock.advance(0);
  expect(on.conversation.status).toBe('cancelling');
  const refusal = sendAndCatch(on, choice.kind);
  free();
  await on.clock.until(run.result);
  await settled(on);
  return refusal ?? fateOf(on);
}

async function waiting(choice: Choice, decided: boolean): Promise<string> {
  const on = await bench({
    replies: [[call('c1', 'ask', { m: 'a' })], ...replies],
    tools: [echoTool('ask').tool],
    plugins: [asks().plugin],
    policies: policiesOf(choice),
  });
  await on.conversation.send('P').result;
  if (decided) await on.conversation.decide({ callId: 'c1', action: 'approve' });
  expect(on.conversation.status).toBe('waiting');
  const refusal = sendAndCatch(on, choice.kind);
  await settled(on);
  return refusal ?? fateOf(on);
}

/** Written by hand: the kind of a message during a run or a cancel, and its outcome after the run ends this way. */
function behindRun({ kind, whileActive, promoteFollowUpOn }: Choice, ending: Ending, refusal: Fate): Fate {
  const as = kind === 'send' ? whileActive : kind;
  if (as === 'reject') return refusal;
  if (as === 'steer') return ending === 'completed' ? 'a steer in the cycle of P' : 'queued as a steer';
  const isPromoted = promoteFollowUpOn.includes(ending);
  return isPromoted ? 'a followUp in its own cycle, when P has ended' : 'queued as a followUp';
}

/**
 * Written by hand: the kind of a message while a call waits. If every call is decided, a queued message first lets P
 * continue.
 */
function whileWaiting(choice: Choice, decided: boolean): Fate {
  const { kind, whileSuspended, promoteFollowUpOn } = choice;
  if (kind === 'steer') return decided ? 'a steer in the cycle of P' : 'queued as a steer';
  if (kind === 'send' && whileSuspended === 'reject') return 'refused: agent_busy';
  if (kind === 'send' && whileSuspended === 'denyAndRun') return 'its own cycle at once';
  if (!decided) return 'queued as a followUp';
  const isPromoted = promoteFollowUpOn.includes('completed');
  return isPromoted ? 'a followUp in its own cycle, when P has ended' : 'queued as a followUp';
}

const SITUATIONS: readonly (readonly [string, (choice: Choice) => Promise<string>, (choice: Choice) => Fate])[] = [
  ['idle', (choice) => idle(choice, 'idle'), () => 'its own cycle at once'],
  ['error', (choice) => idle(choice, 'error'), () => 'its own cycle at once'],
  ...ENDINGS.map(
    (ending) =>
      [
        `active, and the run ends ${ending}`,
        (choice: Choice) => active(choice, ending),
        (choice: Choice) => behindRun(choice, ending, 'refused: agent_busy'),
      ] as const,
  ),
  ['cancelling', cancelling, (choice) => behindRun(choice, 'interrupted', 'refused: cancellation_in_progress')],
  ['waiting, undecided', (choice) => waiting(choice, false), (choice) => whileWaiting(choice, false)],
  ['waiting, decided', (choice) => waiting(choice, true), (choice) => whileWaiting(choice, true)],
];

describe('a message of every kind under every policy', () => {
  it.each(SITUATIONS)('while the conversation is %s', async (_, fate, expected) => {
    const wrong: string[] = [];
    for (const choice of CHOICES.filter((_, at) => at % volume.messagesOf === 0)) {
      const [found, byHand] = [await fate(choice), expected(choice)];
      if (found !== byHand) wrong.push(`${JSON.stringify(choice)}: ${found}; by hand: ${byHand}`);
    }
    expect(wrong).toEqual([]);
  });
});
