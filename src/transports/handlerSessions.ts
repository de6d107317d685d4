/**
 * The sessions of one handler. Rule: a request creates a conversation only where its quota permits.
 */
import type { Agent } from '../agent.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { RunchartError } from '../errors.ts';
import type { Ports } from '../runtime/hostPorts.ts';
import { followedOf } from './followed/followedConversation.ts';
import type { Quotas } from './quotas.ts';
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
