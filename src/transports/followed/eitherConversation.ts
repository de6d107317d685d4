/**
 * The functions that handlers need besides the public members of a conversation, which this process or another one holds. Rule: this is
 * the only place where handlers distinguish the two.
 */
import type { Json, LogEntry } from '../../../machines/internal.ts';
import type { Content } from '../../content/content.ts';
import * as held from '../../conversation/conversation.ts';
import type { Run, RunResult } from '../../conversation/run.ts';
import type { SendOptions } from '../../conversation/sendOptions.ts';
import { resultOfRun } from '../../conversation/served/conversationOverview.ts';
import { checkMessage, type Moment, mustRefer } from '../../conversation/served/messageCheck.ts';
import { followedOf } from './followedConversation.ts';

type Conversation = held.Conversation;

/** The entries of the log themselves. */
export const entriesOf = (conversation: Conversation): readonly LogEntry[] =>
  followedOf(conversation)?.entries ?? held.entriesOf(conversation);

/** A run of the log, active or over. */
export const openRun = (conversation: Conversation, runId: string): Run =>
  followedOf(conversation)?.openRun(runId) ?? held.openRun(conversation, runId);

/** The active run. */
export function activeRun(conversation: Conversation): Run | undefined {
  const followed = followedOf(conversation);
  const { runId } = followed ?? held.runtimeOf(conversation);
  const isActive = conversation.status === 'active' || conversation.status === 'cancelling';
  return isActive && runId !== undefined ? openRun(conversation, runId) : undefined;
}

/** The active run, or the one that starts next. */
export const currentRun = (conversation: Conversation): Run | undefined =>
  followedOf(conversation) ? activeRun(conversation) : conversation.resume();

/** The run, when its holder has taken it. A run of this process is not waited for: its first signals would be missed. */
function taken(conversation: Conversation, run: Run): Run | Promise<Run> {
  const followed = followedOf(conversation);
  return followed ? followed.answerTo(run).then(() => run) : run;
}

/** Sends a message. Throws or rejects where it is refused. */
export function sendMessageTo(conversation: Conversation, content: Content, options: SendOptions): Run | Promise<Run> {
  if (!followedOf(conversation)) mustRefer(conversation, content);
  return taken(conversation, conversation.send(content, options));
}

/** Rejects where `sendMessageTo` would refuse the message: in any state of the conversation, or now. Changes nothing. */
export async function checkMessageTo(
  conversation: Conversation,
  content: Content,
  options: SendOptions,
  moment: Moment = 'later',
): Promise<void> {
  const followed = followedOf(conversation);
  if (followed) return followed.checkMessage(content, options, moment);
  checkMessage(conversation, content, options, moment);
}

/** Continues the last cycle. Rejects where the holder cannot be asked. */
export const resumeConversation = (conversation: Conversation) => taken(conversation, conversation.resume());

/** The result of a run that is over. */
export const resultOf = (conversation: Conversation, runId: string): Promise<RunResult> =>
  followedOf(conversation)?.resultOf(runId) ?? resultOfRun(conversation, runId);

/** The bytes of an image; undefined if the store no longer has it. */
export async function bytesOf(conversation: Conversation, reference: string): Promise<Uint8Array | undefined> {
  const followed = followedOf(conversation);
  return followed ? followed.bytesOf(reference) : held.runtimeOf(conversation).attachments.bytesOf(reference);
}

export async function writeState(conversation: Conversation, writes: { [key: string]: Json }): Promise<void> {
  const followed = followedOf(conversation);
  if (followed) return followed.writeState(writes);
  await held.runtimeOf(conversation).submit({ type: 'state.written', writes });
}

/** The requests of the conversation offer these tools of a page from now on. */
export async function offerTools(conversation: Conversation, tools: unknown): Promise<void> {
  const followed = followedOf(conversation);
  if (followed) return followed.offerPageTools(tools);
  held.runtimeOf(conversation).toolbox.offerPageTools(tools);
}

/** Calls `changed` after each change of the status, until the returned function is called. */
export function watchStatus(conversation: Conversation, changed: () => void): () => void {
  const followed = followedOf(conversation);
  if (!followed) return held.watchStatus(conversation, changed);
  const views = followed.view$.subscribe(changed);
  return () => views.unsubscribe();
}

/** Cancels the active run and releases the conversation, in this process or in its holder's. */
export async function endConversation(conversation: Conversation): Promise<void> {
  await conversation.cancel();
  const followed = followedOf(conversation);
  await (followed ? followed.closeHolder() : conversation.close());
}
