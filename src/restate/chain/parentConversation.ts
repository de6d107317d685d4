/**
 * What a held sub-agent has of its parent: the surroundings that came with the last act, and reports to its inbox. Invariant: the parent
 * receives the entries of an act before its answer, and the answers before the report that the sub-agent rests.
 */
import { type LogEntry, runOf, usageOf } from '../../../machines/internal.ts';
import type { EngineAgent } from '../../agent.ts';
import { type Conversation, openRun } from '../../conversation/conversation.ts';
import { type AgentEnvironment, type OpenConversation, openConversation } from '../../conversation/open.ts';
import type { RunHandle } from '../../conversation/run.ts';
import { ConfigurationError } from '../../errors.ts';
import type { SpentUsage } from '../../runtime/subAgentPort.ts';
import type { Act } from '../../stores/logStore.ts';
import type { ContinuedAttempt } from './continuedAttempt.ts';
import type { RunEnd, SubAgentNews, SubAgentPlace } from './engineAttempt.ts';

const nothingSpent: SpentUsage = { counted: { tokens: 0, costUsd: 0, unpriced: 0 }, uncounted: [] };

/** A client may read a sub-agent. */
const READS: ReadonlySet<unknown> = new Set(['overview', 'result', 'blob']);

export class ParentConversation {
  readonly #attempt: Pick<ContinuedAttempt, 'conversationId' | 'tell'>;
  readonly #log: readonly LogEntry[];
  #place: SubAgentPlace;
  /** The run that the parent waits for. */
  #run: RunHandle | undefined;

  constructor(
    attempt: Pick<ContinuedAttempt, 'conversationId' | 'tell'>,
    log: readonly LogEntry[],
    place: SubAgentPlace,
  ) {
    this.#attempt = attempt;
    this.#log = log;
    this.#place = place;
  }

  report(news: SubAgentNews): void {
    const { conversationId } = this.#attempt;
    this.#attempt.tell(this.#place.parent.conversationId, { of: conversationId, news });
  }

  /** Opens the sub-agent as the tool of the parent defines it. */
  async open(agent: EngineAgent, environment: AgentEnvironment): Promise<OpenConversation> {
    const openApart = agent.profile.makeSubAgents?.openApart;
    if (!openApart) throw new ConfigurationError('the agent of this worker has no tool that spawns sub-agents');
    const { tool, parent, cwd, owner } = this.#place;
    return (await openApart({
      id: this.#attempt.conversationId,
      tool,
      parent,
      above: () => this.#place.request,
      spent: () => this.#spent(),
      isTaken: (callId) => this.#place.taken.includes(callId),
      openChild: (request, profile) =>
        openConversation(environment, profile, { ...request, cwd, owner, attended: true }),
    })) as OpenConversation;
  }

  #spent(): SpentUsage {
    const { spent = nothingSpent, upTo } = this.#place;
    const since = this.#log.slice(upTo).flatMap((entry) => usageOf(entry) ?? []);
    return { counted: spent.counted, uncounted: [...spent.uncounted, ...since] };
  }

  moved(place: SubAgentPlace): void {
    this.#place = place;
  }

  /** An act of the parent was begun. */
  begun(conversation: Conversation, { type, actId, options, resumptionId }: Act): void {
    const { messageId = actId } = (options ?? {}) as { messageId?: string };
    if (type === 'send' || type === 'resume')
      this.follow(openRun(conversation, runOf(type === 'send' ? messageId : String(resumptionId))) as RunHandle);
  }

  follow(run: RunHandle): void {
    this.#run = run;
  }

  /** How the run ended that the parent waits for. */
  async end(): Promise<RunEnd | undefined> {
    if (!this.#run?.ended) return undefined;
    const { termination, cause, error } = await this.#run.result;
    return {
      termination,
      ...(cause !== undefined && { cause }),
      ...(error && { error: { code: error.code, message: error.message } }),
    };
  }
}

/** Throws ConfigurationError for an act of a client that would change a sub-agent. */
export function refuseChange([first]: readonly LogEntry[], { type }: Act): void {
  if (first?.type !== 'conversation' || !first.parent || READS.has(type)) return;
  const { conversationId, parent } = first;
  throw new ConfigurationError(
    `${conversationId} is a sub-agent of ${parent.conversationId}: act there; here it can only be read`,
  );
}
