/**
 * Runs one conversation inside an invocation of a durable engine. Invariant: all inputs of the conversation are one chain of recorded
 * items, so each attempt of the invocation repeats the same log. Items of an earlier attempt are repeated without any effect; then this
 * attempt continues. A long run is continued by another invocation, which repeats the same chain.
 */
import type { EngineAgent } from '../../agent.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import { CorruptLogError, RunchartError, thrownMessage } from '../../errors.ts';
import { platformPorts } from '../../runtime/hostPorts.ts';
import { noConversation } from '../../stores/logStore.ts';
import { ContinuedAttempt } from './continuedAttempt.ts';
import {
  type AttemptListener,
  type ChainItem,
  type EngineAttempt,
  isNews,
  type SubAgentNews,
  type SubAgentPlace,
  type Waiting,
} from './engineAttempt.ts';
import { HeldConversation } from './heldConversation.ts';
import type { FollowLive } from './remoteSubAgent.ts';

/**
 * The version of the charts and of the records. It changes when a chain that was recorded before would lead to another log:
 * see test/restate/chainVersion.test.ts.
 */
export const CHAIN_VERSION = 3;

/** The model replies of a run after which another invocation continues it. */
const REPLIES_MOST = 50;
const BEAT_MS = 20_000;

export interface HoldOptions {
  agent: EngineAgent;
  invocation: EngineAttempt;
  /** Receives each conversation as it is opened, to show its live signals. */
  opened?(conversation: Conversation): void;
  /** Receives the live signals of a sub-agent, until the returned function is called. */
  followLive?: FollowLive;
  version?: number;
  repliesMost?: number;
  beatMs?: number;
}

/** Carries out the acts that wait, and resolves when nothing is under way. Rejects if this attempt is over. */
export async function holdConversation(options: HoldOptions): Promise<void> {
  const { invocation, version = CHAIN_VERSION } = options;
  const carried = await invocation.readCarried();
  const isRepeatable = carried?.version === version;
  const attempt = new ContinuedAttempt(invocation, version, carried, isRepeatable);
  try {
    await hold(options, attempt);
  } catch (error) {
    const isOther = RunchartError.isRunchartError(error) && error.code === 'replay';
    if (!isOther || attempt.isOwn) throw error;
    // The agent has other plugins, policies or tools now. Nothing was commanded yet.
    await hold(options, new ContinuedAttempt(invocation, version, carried, false));
  }
}

async function hold(options: HoldOptions, attempt: ContinuedAttempt): Promise<void> {
  const {
    agent,
    opened,
    followLive = () => () => {},
    version = CHAIN_VERSION,
    repliesMost = REPLIES_MOST,
    beatMs = BEAT_MS,
  } = options;
  const { left } = attempt;
  const acts = await attempt.takeActs(true);
  // News that come when nothing is under way change nothing.
  if (acts.every(isNews) && !left) return;
  const log = await attempt.readLog();
  const asked = acts.flatMap((waiting) => (isNews(waiting) ? [] : [waiting]));
  const opening = asked.find(({ act, place }) => act.type === 'open' || place);
  const refusal = refusalOf(log, version, opening !== undefined);
  if (refusal) return refuse(attempt, acts, refusal);
  const begin = await attempt.step('begin', () => ({ at: platformPorts.now(), version }));
  if (begin.version !== version) throw otherVersion(begin.version, version);
  const held = new HeldConversation({ agent, attempt, opened, followLive, repliesMost, beatMs }, log.entries, begin.at);
  // An engine may leave the steps of an attempt that is over without an answer.
  const leave = (): void => void held.leave();
  attempt.signal.addEventListener('abort', leave);
  try {
    const place = asked.find((each) => each.place)?.place ?? attempt.leftPlace;
    const failure = await held.open(opening?.act, left, place).catch((error: unknown) => ({ error }));
    if (failure) {
      const item: ChainItem = await attempt.step('next', () => refusedBy(failure.error));
      if (item.kind === 'refused') return refuse(attempt, acts, item);
      throw place ? withoutTool(failure.error, attempt) : failure.error;
    }
    held.add(acts);
    const refused = await follow(held, attempt);
    if (refused) refuse(attempt, acts, refused);
  } finally {
    attempt.signal.removeEventListener('abort', leave);
    await held.leave();
  }
}

/**
 * An earlier attempt could open the sub-agent. If that was another invocation, with an agent that has its tool, the run is not repeated,
 * so that the parent receives the error.
 */
function withoutTool(error: unknown, { isOwn }: ContinuedAttempt): unknown {
  const isOther = RunchartError.isRunchartError(error) && error.code === 'configuration';
  return isOther && !isOwn ? new RunchartError('replay', error.message, { cause: error }) : error;
}

type Refused = Extract<ChainItem, { kind: 'refused' }>;

/** Resolves when the invocation is over; with the refusal if an earlier attempt could not open the conversation. */
async function follow(held: HeldConversation, attempt: ContinuedAttempt): Promise<Refused | undefined> {
  const listener: AttemptListener = {
    rung: async () => held.add(await attempt.takeActs(true)),
    elapsed: (timer) => held.elapsed(timer),
  };
  for (;;) {
    const item: ChainItem = await attempt.step('next', () => held.next(), listener);
    if (item.kind === 'refused') return item;
    if (item.kind === 'continued') {
      attempt.handOver();
      return undefined;
    }
    await held.apply(item);
    if (item.kind === 'waiting') await attempt.listen(listener);
    // Acts may have come while the rest was being recorded.
    if (item.kind !== 'rest' || held.hasWaitingActs) continue;
    const late = await attempt.takeActs(false);
    if (late.length === 0) {
      attempt.end();
      return undefined;
    }
    held.add(late);
    held.add(await attempt.takeActs(true));
  }
}

function refusedBy(error: unknown): ChainItem {
  const code = RunchartError.isRunchartError(error) ? error.code : 'internal';
  return { acts: 0, at: 0, kind: 'refused', code, message: thrownMessage(error) };
}

const otherVersion = (written: number, version: number): CorruptLogError =>
  new CorruptLogError(
    'version',
    `the conversation was continued by version ${written} of the charts, and this worker has version ${version}: use a newer runchart`,
  );

function refusalOf(
  { entries, version: written }: { entries: readonly object[]; version: number },
  version: number,
  isOpening: boolean,
): RunchartError | undefined {
  if (entries.length === 0 && !isOpening) return noConversation();
  return written > version ? otherVersion(written, version) : undefined;
}

/**
 * The log stays as it is: a worker that can open the conversation carries out the next acts. Nobody else asks a sub-agent, so the parent
 * receives the end of a run that was left.
 */
function refuse(
  attempt: ContinuedAttempt,
  acts: readonly Waiting[],
  { code, message }: { code: string; message: string },
): void {
  const error = { code, message };
  const tell = (place: SubAgentPlace, news: SubAgentNews): void =>
    attempt.tell(place.parent.conversationId, { of: attempt.conversationId, news });
  const { leftPlace, left = [] } = attempt;
  for (const waiting of [...(leftPlace ? left : []), ...acts]) {
    if (isNews(waiting)) continue;
    const { to, place } = waiting;
    if (!place) attempt.answer(to, { error });
    else {
      tell(place, { kind: 'answer', to, answer: { error } });
      tell(place, { kind: 'rest' });
    }
  }
  if (!leftPlace) return attempt.sendNews();
  tell(leftPlace, { kind: 'rest', end: { termination: 'Error', error } });
  attempt.end();
}
