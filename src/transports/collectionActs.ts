/**
 * Acts on the conversations of an agent as a whole: a page of the list, and a deletion. Rule: a caller that is limited to an owner
 * reaches no other conversation, and cannot distinguish one from a missing one.
 */
import type { Agent } from '../agent.ts';
import { RunchartError } from '../errors.ts';
import type { ConversationInfo, ListOptions } from '../stores/logStore.ts';
import { codeOf, malformed } from './clientActs.ts';
import { endConversation } from './followed/eitherConversation.ts';
import type { Caller } from './httpRequests.ts';
import type { Sessions } from './sessions.ts';

const ROWS = 100;
const ROWS_MAX = 1000;

function statusIn(status: string | null): ListOptions['status'] {
  if (status === null || status === 'idle' || status === 'waiting' || status === 'active') return status ?? undefined;
  throw malformed('status to be idle, waiting or active');
}

function limitIn(limit: string | null): number {
  if (limit === null) return ROWS;
  if (/^[1-9]\d{0,3}$/.test(limit) && Number(limit) <= ROWS_MAX) return Number(limit);
  throw malformed(`limit to be a whole number from 1 to ${ROWS_MAX}`);
}

/** The rows that the query of the address requests. Throws RunchartError, code malformed. */
export async function listPage(agent: Agent, { searchParams }: URL, caller: Caller): Promise<ConversationInfo[]> {
  const asked = searchParams.get('owner') ?? undefined;
  if (asked === '') throw malformed('owner to be a name');
  // Conversations of others are as if they did not exist.
  if (asked !== undefined && caller.owner !== undefined && asked !== caller.owner) return [];
  const owner = caller.owner ?? asked;
  const status = statusIn(searchParams.get('status'));
  const limit = limitIn(searchParams.get('limit'));
  const cursor = searchParams.get('cursor') ?? undefined;
  try {
    return await agent.list({
      limit,
      ...(owner !== undefined && { owner }),
      ...(status !== undefined && { status }),
      ...(cursor !== undefined && { cursor }),
    });
  } catch (error) {
    if (codeOf(error) === 'configuration') throw malformed('cursor to be the one of a row');
    throw error;
  }
}

/** The number of attempts at a deletion, if somebody opens the conversation in the meantime. */
const ATTEMPTS = 5;

/**
 * Cancels the current work, then deletes the conversation with its sub-agents. Rejects with RunchartError `not_found`, and
 * with `method` for a wrapper of an agent, which may have no profile.
 */
export async function deleteConversation(
  agent: Agent,
  sessions: Sessions,
  { id, caller: { owner } }: { id: string; caller: Caller },
): Promise<void> {
  const { profile }: Partial<Agent> = agent;
  if (!profile) throw new RunchartError('method', 'this agent has no store from which it could delete a conversation');
  for (let attempt = 1; ; attempt += 1) {
    const conversation = await sessions.acquire(id, { existing: true, owner });
    try {
      await endConversation(conversation);
    } finally {
      sessions.release(conversation);
    }
    try {
      return await profile.store.delete(id);
    } catch (error) {
      if (codeOf(error) !== 'session_busy' || attempt === ATTEMPTS) throw error;
    }
  }
}
