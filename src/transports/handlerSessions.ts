/**
 * The sessions of one handler. Rule: a request creates a conversation only where its quota permits. A caller that cannot reach a
 * conversation learns nothing of its readers.
 */
import type { Agent } from '../agent.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { RunchartError } from '../errors.ts';
import type { Ports } from '../runtime/hostPorts.ts';
import { followedOf } from './followed/followedConversation.ts';
import { QuotaRefusal, type Quotas } from './quotas.ts';
import { type SessionOptions, type Sessions, sessions } from './sessions.ts';

/** The sessions of one handler. Throws ConfigurationError for an invalid option. */
export function ownSessions(
  agent: Agent,
  { limits, setTimer }: { limits?: Pick<SessionOptions, 'openMax' | 'idleMs'>; setTimer?: Ports['setTimer'] },
): Sessions {
  const { openMax, idleMs } = limits ?? {};
  return sessions(agent, {
    ...(openMax !== undefined && { openMax }),
    ...(idleMs !== undefined && { idleMs }),
    ...(setTimer && { setTimer }),
  });
}

/** Joins the conversation, or creates it where the quota permits. `owner`: finds and creates only conversations of this owner. */
export async function acquireOrCreate(
  shared: Sessions,
  quotas: Pick<Quotas, 'beginCreation'>,
  { id, owner }: { id: string | undefined; owner: string | undefined },
): Promise<{ conversation: Conversation; isNew: boolean }> {
  if (id !== undefined)
    try {
      return { conversation: await shared.acquire(id, { existing: true, owner }), isNew: false };
    } catch (error) {
      if (!RunchartError.isRunchartError(error) || error.code !== 'not_found') throw error;
    }
  const takeBack = quotas.beginCreation();
  try {
    const conversation = await shared.acquire(id, { owner });
    // Another process was faster.
    return { conversation, isNew: !followedOf(conversation) };
  } catch (error) {
    takeBack();
    throw error;
  }
}

/**
 * Counts a reader of the conversation until the returned function is called. A caller that cannot reach the conversation gets
 * `not_found`, and not the limit that its readers have used up.
 */
export async function beginReader(
  shared: Sessions,
  quotas: Pick<Quotas, 'beginClient'>,
  { id, owner }: { id: string; owner: string | undefined },
): Promise<() => void> {
  try {
    return quotas.beginClient(id);
  } catch (refusal) {
    const isOfConversation = refusal instanceof QuotaRefusal && refusal.status === 429;
    if (isOfConversation) shared.release(await shared.acquire(id, { existing: true, owner }));
    throw refusal;
  }
}
