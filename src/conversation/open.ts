/**
 * Opens a conversation: reads its log, completes it where a process ended early, and starts its chart. Invariant: the
 * entries of an opening are durable before anything starts. A failed opening releases the log.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { type CycleRequest, isCutOff, type LogEntry, type NewEntry, openCalls } from '../../machines/internal.ts';
import { type Policies, thresholdsOf } from '../agentPolicies.ts';
import type { EarlierMessage } from '../content/content.ts';
import { ConfigurationError, RunchartError } from '../errors.ts';
import { emptyFolds, foldEntry } from '../log/conversationLog.ts';
import type { Redact } from '../log/redact.ts';
import { onDemand } from '../onDemand.ts';
import type { AgentOptions } from '../options.ts';
import { windowOf } from '../runtime/currentRequest.ts';
import type { Ports } from '../runtime/hostPorts.ts';
import type { ConversationObserver } from '../runtime/interpreter/inspection.ts';
import { type OnDemand, Runtime } from '../runtime/runtime.ts';
import type { AgentProfile, OpenChild } from '../runtime/subAgentPort.ts';
import { hostError, type LogHandle, type LogStore, refuseOtherOwner } from '../stores/logStore.ts';
import { nextTurn } from '../timeLimit.ts';
import type { Toolbox } from '../tools/toolbox.ts';
import { Conversation, loadDecisions } from './conversation.ts';

/** Parts that few conversations need. */
const load = {
  /** For a conversation that exists already. */
  entryShape: onDemand(() => import('../log/entryShape.ts')),
  /** For an agent with tools, or a conversation that exists already. */
  tools: onDemand(async () => ({
    ...(await import('../tools/execute.ts')),
    ...(await import('../plugins/toolGate.ts')),
  })),
  /** For an agent with plugins. */
  phases: onDemand(async () => ({
    ...(await import('../plugins/phases.ts')),
    ...(await import('../plugins/workObserver.ts')),
  })),
  /** Where the policy `textToolCalls` names a format. */
  textCalls: onDemand(() => import('../models/textCalls.ts')),
  /** Where something happens as the window fills up, and the model declares the size of its window. */
  contextWindow: onDemand(() => import('../runtime/contextWindow.ts')),
  /** Where the policy `context` compacts, and the model declares the size of its window. */
  summaries: onDemand(() => import('../runtime/summary.ts')),
  /** For `open(id, { history })`. */
  history: onDemand(() => import('./history.ts')),
  /** For a store that several processes share. */
  remoteActs: onDemand(() => import('./served/remoteActs.ts')),
  /** For `createAgent({ interpreter: 'xstate' })`. */
  xstate: onDemand(() => import('../runtime/interpreter/xstate.ts')),
  /** For `createAgent({ logger })`. */
  factLog: onDemand(() => import('../log/factLog.ts')),
  /** For `createAgent({ inspect })`. */
  inspection: onDemand(() => import('../runtime/interpreter/inspection.ts')),
} as const;

/** Shared by all conversations of an agent. */
export interface AgentEnvironment {
  store: Pick<LogStore, 'open' | 'list'>;
  ports: Ports;
  redact(): Promise<Redact>;
  inspect: AgentOptions['inspect'];
  interpreter: AgentOptions['interpreter'];
  logger: AgentOptions['logger'];
  /** Opens sub-agents where an engine keeps the conversation. */
  below?: OpenChild | undefined;
}

type Parent = { conversationId: string; callId: string };

export interface OpenRequest {
  id: string;
  /** For a new conversation; an existing one keeps its own. */
  cwd: string;
  history?: readonly EarlierMessage[] | undefined;
  /** Opens only a conversation that exists; the log of a sub-agent does not count. */
  existing?: boolean | undefined;
  /** Of a new conversation; an existing one must have it. */
  owner?: string | undefined;
  /** A person can be asked for approval. */
  attended: boolean;
  authorize?: AgentOptions['authorize'] | undefined;
  /** The schema of final answers. */
  output?: StandardSchemaV1 | undefined;
  /** The parent of a sub-agent. */
  parent?: Parent;
  /** The request that a sub-agent works on. */
  above?: () => CycleRequest;
  closed(): void;
}

export interface OpenConversation {
  conversation: Conversation;
  runtime: Runtime;
}

const SCHEMA = 1;

/** Rejects with SessionBusyError, CorruptLogError, ConfigurationError, or RunchartError `store`. */
export async function openConversation(
  environment: AgentEnvironment,
  profile: AgentProfile,
  opening: OpenRequest,
): Promise<OpenConversation> {
  const { id, existing, owner } = opening;
  const handle = await byStore(environment, 'open', () => environment.store.open(id, { existing, owner }));
  try {
    const made = await opened(environment, profile, opening, handle);
    if (handle.acts$ && !opening.parent) (await load.remoteActs()).serveActs(made.conversation, handle);
    return made;
  } catch (error) {
    try {
      await handle.close();
    } catch {
      // The reason of the failed opening counts, not that of a failed close.
    }
    throw error;
  }
}

/**
 * Resolves to the result of the store. An error of its own becomes a RunchartError `store`, except those with which an engine ends an
 * attempt.
 */
export async function byStore<T>({ below }: AgentEnvironment, act: string, done: () => T | Promise<T>): Promise<T> {
  try {
    return await done();
  } catch (cause) {
    throw below ? cause : hostError(act, cause);
  }
}

async function opened(
  environment: AgentEnvironment,
  profile: AgentProfile,
  opening: OpenRequest,
  handle: LogHandle,
): Promise<OpenConversation> {
  const { id, history, closed, authorize, attended } = opening;
  const folds = emptyFolds();
  const entries = await byStore(environment, 'read', () => readLog(handle, id, (entry) => foldEntry(folds, entry)));
  const { cwd, owner } = homeOf(entries, opening);
  const fresh = entries.length === 0;
  if (!fresh && history) throw new ConfigurationError(`history is for new conversations; ${id} exists already`);
  const parentId = parentIdOf(entries, opening);
  if (opening.existing && (fresh || parentId)) throw new RunchartError('not_found', 'there is no such conversation');
  const { toolbox, policies } = profile;
  const { ports } = environment;
  const redact = await environment.redact();
  const schemas = new Map(opening.output && [['', opening.output]]);
  const hasCalls = !fresh || toolbox.mayHaveTools;
  const loaded = await loadedFor(environment, profile, hasCalls, id);
  const decisions = hasCalls ? await loadDecisions() : undefined;
  if (!fresh) await decisions?.loadSettlements();
  const runtime = new Runtime({
    ...profile,
    ...loaded,
    id,
    cwd,
    handle,
    entries,
    folds,
    ports,
    redact,
    schemas,
    attended,
    above: opening.above,
  });
  if (environment.logger) (await load.factLog()).logFacts(environment.logger, runtime);
  const openChild = childOpener(environment, { cwd, owner, attended });
  const subAgents = profile.makeSubAgents?.({ id, runtime, policies, openChild });
  runtime.subAgents = subAgents;
  const head = fresh ? await headOf(environment, opening, runtime) : [];
  const begin = parentId === undefined ? [...head, ...(await repairsOf(handle, entries, runtime, toolbox))] : head;
  const write = async (made: readonly NewEntry[]): Promise<void> => {
    if (made.length === 0) return;
    await byStore(environment, 'append', () => runtime.log.append(made, ports.now()));
  };
  await write(begin);
  try {
    if (subAgents && parentId === undefined) await write(await subAgents.restore(environment.below !== undefined));
    runtime.start();
  } catch (error) {
    await subAgents?.close();
    throw error;
  }
  const conversation = new Conversation({
    id,
    cwd,
    owner: owner ?? null,
    runtime,
    schemas,
    policies,
    newId: ports.newId,
    authorize,
    decisions,
    available: { named: profile.named, tools: () => toolbox.specs.map(({ name }) => name) },
    closed,
    parentId,
  });
  loaded.observer?.opened({ type: '@runchart.open', conversation });
  if (parentId === undefined && resumesByItself(runtime, policies.onRestart)) conversation.resume();
  return { conversation, runtime };
}

/** Opens sub-agents in the surroundings of their parent, unless an engine keeps them elsewhere. */
const childOpener =
  (environment: AgentEnvironment, home: Pick<OpenRequest, 'cwd' | 'owner' | 'attended'>): OpenChild =>
  (child, profile) =>
    environment.below?.(child, profile) ?? openConversation(environment, profile, { ...child, ...home });

/** Entries that are read in one turn of the event loop. */
const ENTRIES_A_TURN = 1000;

/** All entries of a handle, each given to `take` as it is read. Throws CorruptLogError. */
export async function readLog(
  handle: LogHandle,
  id: string,
  take: (entry: LogEntry) => void = () => {},
  giveWay = nextTurn,
): Promise<LogEntry[]> {
  const log: LogEntry[] = [];
  let shape: Awaited<ReturnType<typeof load.entryShape>> | undefined;
  for await (const stored of handle.read()) {
    shape ??= await load.entryShape();
    const entry = shape.nextEntry(stored, id, log.length);
    log.push(entry);
    take(entry);
    if (log.length % ENTRIES_A_TURN === 0) await giveWay();
  }
  return log;
}

/** A new log needs no repair. */
async function repairsOf(handle: LogHandle, entries: readonly LogEntry[], { logState }: Runtime, toolbox: Toolbox) {
  if (entries.length === 0 && !handle.notices?.length) return [];
  const { mended } = await load.entryShape();
  return mended(handle, entries, logState, (name) => toolbox.isIdempotent(name));
}

/** The optional parts that this conversation needs, by the names of their exports. */
async function loadedFor(
  { ports, inspect, interpreter }: AgentEnvironment,
  { policies, plugins, models, named }: AgentProfile,
  hasCalls: boolean,
  id: string,
): Promise<OnDemand & { observer: ConversationObserver | undefined }> {
  const window = thresholdsOf(policies.context, windowOf(models, named));
  const inspection = inspect && (await load.inspection());
  const observer = inspection?.observerOf(inspect as NonNullable<typeof inspect>, id);
  const wanted = interpreter === 'xstate' ? (await load.xstate()).xstate : observer?.interpreter;
  const tools = hasCalls && (await load.tools());
  return {
    interpreter: ports.interpreter ?? wanted,
    observer,
    ...(tools && { tools }),
    ...(plugins.length > 0 && (await load.phases())),
    ...(window && (await load.contextWindow())),
    ...(window?.compact !== undefined && {
      summaries: await load.summaries(),
    }),
    ...(policies.toolRetry && tools && (await tools.loadRetry())),
    ...(policies.textToolCalls && (await load.textCalls())),
  };
}

/** True if a waiting cycle has decisions, or if the policy resumes a cycle that a crash interrupted. */
function resumesByItself({ status, logState }: Runtime, onRestart: Policies['onRestart']): boolean {
  if (onRestart === 'idle') return false;
  if (status === 'waiting') return openCalls(logState).decisions.length > 0;
  return onRestart === 'resume' && isCutOff(logState);
}

async function headOf(
  { ports }: AgentEnvironment,
  { cwd, history, parent, owner }: OpenRequest,
  { attachments }: Runtime,
): Promise<NewEntry[]> {
  const { now } = ports;
  const head = {
    runId: null,
    type: 'conversation' as const,
    schema: SCHEMA,
    cwd,
    createdAt: now(),
    ...(owner !== undefined && { owner }),
  };
  const earlier = history ? await (await load.history()).historyEntries(history, attachments) : [];
  return [parent ? { ...head, parent } : head, ...earlier];
}

/** An existing conversation keeps its directory and its owner. Throws RunchartError `not_found` for another owner. */
function homeOf([first]: readonly LogEntry[], { cwd, owner }: OpenRequest): Pick<OpenRequest, 'cwd' | 'owner'> {
  refuseOtherOwner(first, owner);
  return first?.type === 'conversation' ? first : { cwd, owner };
}

/** The only conversation that may continue this one; undefined where that is the caller. */
export function parentIdOf(
  [first]: readonly LogEntry[],
  { id, parent }: Pick<OpenRequest, 'id' | 'parent'>,
): string | undefined {
  const written = first?.type === 'conversation' ? first.parent : undefined;
  if (!parent) return written?.conversationId;
  const own = !first || (written?.conversationId === parent.conversationId && written.callId === parent.callId);
  if (own) return undefined;
  throw new ConfigurationError(
    `the log ${id} is not that of a sub-agent of ${parent.conversationId}; it is left alone`,
  );
}
