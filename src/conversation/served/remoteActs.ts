/**
 * Carries out the acts that other processes request of a conversation that this process holds. Invariant: acts begin in the order of
 * their arrival, and none
 * waits for another. An act is answered with the append that stores its effect; an act without an effect in this log is answered
 * when it has ended. A repeated message or request is the same one. `entries` of an answer is the length of a log that has the effect.
 */
import {
  type Decision,
  type Json,
  judgeDecision,
  type LogEntry,
  runOf,
  type Settlement,
} from '../../../machines/internal.ts';
import type { Content } from '../../content/content.ts';
import { toBase64 } from '../../content/imageFormat.ts';
import { RunchartError, thrownMessage } from '../../errors.ts';
import type { Act, ActAnswer, EffectOfAct, LogHandle } from '../../stores/logStore.ts';
import { type Conversation, entriesOf, openRun, resumeAs, runtimeOf, sendWithReceipt } from '../conversation.ts';
import type { SendOptions } from '../sendOptions.ts';
import { overviewOf, resultOfRun } from './conversationOverview.ts';
import { checkMessage, type Moment, mustRefer } from './messageCheck.ts';
import { once } from './repeatedRequests.ts';

type Answer = { [key: string]: Json };
/** Describes the entry that the act leads to, and the answer that is stored with it. */
type Expect = (effect: (entry: LogEntry) => Answer | undefined) => void;
type ActOf = (conversation: Conversation, act: Act, expect: Expect) => Answer | Promise<Answer>;

/** Begins to carry out acts, until the conversation is closed or its lease is over. */
export function serveActs(conversation: Conversation, handle: LogHandle): void {
  handle.shareLive?.(conversation.live$);
  handle.acts$?.subscribe({
    next: (act) => void carryOut(conversation, handle, act),
    // Another process may hold the conversation now; this one can store nothing more.
    error: () => void conversation.close().catch(() => undefined),
  });
}

/** Carries an act out in the process that requests it, because that process holds the conversation now. */
export const carryOutHere = (conversation: Conversation, act: Act): Promise<Answer> =>
  done(conversation, act, () => {});

async function carryOut(conversation: Conversation, handle: LogHandle, act: Act): Promise<void> {
  const { actId } = act;
  const expect: Expect = (effect) => {
    const answered: EffectOfAct = (entry) => {
      const answer = effect(entry);
      return answer && { ...answer, entries: entry.seq + 1 };
    };
    handle.expectEffect?.(actId, answered);
  };
  let answer: ActAnswer;
  try {
    answer = { value: await done(conversation, act, expect) };
  } catch (error) {
    const code = RunchartError.isRunchartError(error) ? error.code : 'internal';
    const message =
      code === 'internal' ? 'the act failed in the process that holds the conversation' : thrownMessage(error);
    answer = { error: { code, message } };
  }
  try {
    await handle.answerAct?.(actId, answer);
  } catch {
    // If an act has no answer, its caller receives `unavailable`.
    await handle.answerAct?.(actId, 'value' in answer ? UNANSWERED : answer).catch(() => undefined);
  }
}

const UNANSWERED: ActAnswer = {
  error: { code: 'store', message: 'the act was carried out, but its answer could not be stored' },
};

async function done(conversation: Conversation, act: Act, expect: Expect): Promise<Answer> {
  const carriedOut = ACTS.get(String(act.type));
  if (!carriedOut) throw new RunchartError('malformed', 'expected an act that this version knows: update runchart');
  const { request } = act;
  const key = typeof request === 'string' ? request : undefined;
  const answer = await once(conversation, key, async () => carriedOut(conversation, act, expect));
  return { ...answer, entries: entriesOf(conversation).length };
}

/** Sends a message of any kind. Without an id of its own, it has that of its act. */
async function send(conversation: Conversation, act: Act, expect: Expect): Promise<Answer> {
  const options = { messageId: act.actId, ...(act.options as SendOptions | undefined) };
  const isIt = (entry: LogEntry): boolean =>
    (entry.type === 'user-message' || entry.type === 'message-queued') && entry.messageId === options.messageId;
  mustRefer(conversation, act.content as unknown as Content);
  const { run, receipt } = sendWithReceipt(conversation, act.content as unknown as Content, options);
  const { messageId, delivered } = receipt;
  const accepted = { messageId, runId: run.id };
  const isStored = (): boolean => entriesOf(conversation).some(isIt);
  if (isStored()) return accepted;
  expect((entry) => (isIt(entry) ? accepted : undefined));
  const ownRun = run.id === runOf(messageId) ? run.result : undefined;
  const isDelivered = delivered.then(
    (outcome) => outcome === 'delivered',
    () => false,
  );
  await untilStored(conversation, isIt, ownRun ? Promise.race([isDelivered, ownRun]) : isDelivered);
  if (isStored()) return accepted;
  const { error } = (await ownRun) ?? {};
  if (error) throw new RunchartError(error.code, error.message);
  if (await isDelivered) return accepted;
  throw new RunchartError(
    'store',
    'the message could not be stored, or was given back before it counted: send it again',
  );
}

async function decide(conversation: Conversation, act: Act, expect: Expect): Promise<Answer> {
  const decision = act.decision as unknown as Decision;
  const { logState } = runtimeOf(conversation);
  expect((entry) => {
    if (entry.type !== 'decision' || entry.callId !== decision?.callId) return undefined;
    if (entry.decision.by !== decision.by || entry.decision.action !== decision.action) return undefined;
    // The entry has not been folded yet.
    return { receipt: judgeDecision(logState.calls.get(entry.callId), entry.decision).receipt };
  });
  return { receipt: await conversation.decide(decision) };
}

async function settle(conversation: Conversation, { callId, how }: Act, expect: Expect): Promise<Answer> {
  expect((entry) => (entry.type === 'call-settled' && entry.callId === callId ? { receipt: 'applied' } : undefined));
  return { receipt: await conversation.settle(callId as string, how as Settlement) };
}

async function cancel(conversation: Conversation, { runId }: Act, expect: Expect): Promise<Answer> {
  const isNamed = typeof runId === 'string';
  expect((entry) =>
    entry.type === 'run-stop' && (!isNamed || entry.runId === runId) ? { status: 'idle' } : undefined,
  );
  await (isNamed ? openRun(conversation, runId) : conversation).cancel();
  return { status: conversation.status };
}

/**
 * Continues the last cycle. Answers when the run is in the log, or is over without a start in it: it had nothing to continue, only
 * repeated settled calls, or was cancelled first. The answer then contains how it ended, because the log does not.
 */
export async function resume(
  conversation: Conversation,
  resumptionId: unknown,
  expect: Expect = () => {},
): Promise<{ runId: string; termination?: string; cause?: string }> {
  const run = typeof resumptionId === 'string' ? resumeAs(conversation, resumptionId) : conversation.resume();
  const accepted = { runId: run.id };
  const isBegun = (entry: LogEntry): boolean =>
    (entry.type === 'run-resumed' || entry.type === 'run-started') && entry.runId === run.id;
  if (entriesOf(conversation).some(isBegun)) return accepted;
  expect((entry) => (isBegun(entry) ? accepted : undefined));
  await untilStored(conversation, isBegun, run.result);
  if (entriesOf(conversation).some(isBegun)) return accepted;
  const { error, termination, cause } = await run.result;
  if (error) throw new RunchartError(error.code, error.message);
  return { ...accepted, termination, ...(cause !== undefined && { cause }) };
}

/** Resolves when the log has such an entry, or at `end`. A message may wait for a person, and a run may take long. */
async function untilStored(
  conversation: Conversation,
  isIt: (entry: LogEntry) => boolean,
  end: Promise<unknown>,
): Promise<void> {
  let stop = (): void => {};
  const stored = new Promise<void>((resolve) => {
    const following = conversation.log$(entriesOf(conversation).length).subscribe({
      next: (entry) => {
        if (isIt(entry)) resolve();
      },
      complete: resolve,
    });
    stop = () => following.unsubscribe();
  });
  await Promise.race([stored, end]).finally(stop);
}

const json = (value: object): Answer => JSON.parse(JSON.stringify(value)) as Answer;

const ACTS: ReadonlyMap<string, ActOf> = new Map<string, ActOf>([
  ['send', send],
  ['decide', decide],
  ['settle', settle],
  ['cancel', cancel],
  ['resume', (conversation, { resumptionId }, expect) => resume(conversation, resumptionId, expect)],
  ['close', (conversation) => conversation.close().then(() => ({}))],
  ['overview', (conversation) => json({ overview: overviewOf(conversation, entriesOf(conversation)) })],
  ['result', async (conversation, { runId }) => json({ result: await resultOfRun(conversation, String(runId)) })],
  [
    'check-message',
    (conversation, { content, options, moment }) => {
      checkMessage(conversation, content as unknown as Content, options as SendOptions, moment as Moment);
      return {};
    },
  ],
  ['rewind', (conversation, { messageId }) => conversation.rewind(messageId as string).then(() => ({}))],
  ['rename', (conversation, { title }) => conversation.rename(title as string).then(() => ({}))],
  [
    'blob',
    async (conversation, { reference }) => {
      const bytes = await runtimeOf(conversation).attachments.bytesOf(String(reference));
      return { bytes: bytes ? toBase64(bytes) : null };
    },
  ],
  [
    'write-state',
    async (conversation, { writes }) => {
      await runtimeOf(conversation).submit({ type: 'state.written', writes: writes as Answer });
      return {};
    },
  ],
  [
    'offer-tools',
    (conversation, { tools }) => {
      runtimeOf(conversation).toolbox.offerPageTools(tools);
      return {};
    },
  ],
]);
