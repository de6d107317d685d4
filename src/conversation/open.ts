/**
 * Opens a conversation: reads its log, completes it where a process ended early, and starts its chart. Invariant: the
 * entries of an opening are durable before anything starts. A failed opening releases the log.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { isCutOff, type LogEntry, type NewEntry, openCalls } from '../../machines/internal.ts';
import { type Policies, thresholdsOf } from '../agentPolicies.ts';
import type { EarlierMessage } from '../content/content.ts';
import { ConfigurationError, RunchartError } from '../errors.ts';
import type { Redact } from '../log/redact.ts';
import { onDemand } from '../onDemand.ts';
import type { AgentOptions } from '../options.ts';
import type { Ports } from '../runtime/hostPorts.ts';
import type { ConversationObserver } from '../runtime/interpreter/inspection.ts';
import { type OnDemand, Runtime } from '../runtime/runtime.ts';
import type { AgentProfile, OpenChild } from '../runtime/subAgentPort.ts';
import type { LogHandle, LogStore } from '../stores/logStore.ts';
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
  phases: onDemand(() => import('../plugins/phases.ts')),
  /** Where the policy `textToolCalls` names a format. */
  textCalls: onDemand(() => import('../models/textCalls.ts')),
  /** Where something happens as the window fills up, and the model declares the size of its window. */
  contextWindow: onDemand(() => import('../runtime/contextWindow.ts')),
  /** Where the policy `context` compacts, and the model declares the size of its window. */
  summaries: onDemand(() => import('../runtime/summary.ts')),
  /** For `open(id, { history })`. */
  history: onDemand(() => import('./history.ts')),
  /** For `createAgent({ interpreter: 'xstate' })`. */
  xstate: onDemand(() => import('../runtime/interpreter/xstate.ts')),
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
}

type Parent = { conversationId: string; callId: string };

export interface OpenRequest {
  id: string;
  /** For a new conversation; an existing one keeps its own. */
  cwd: string;
  history?: readonly EarlierMessage[] | undefined;
  /** Opens only a conversation that exists; the log of a sub-agent does not count. */
  existing?: boolean | undefined;
  /** A person can be asked for approval. */
  attended: boolean;
  authorize?: AgentOptions['authorize'] | undefined;
  /** The schema of final answers. */
  output?: StandardSchemaV1 | undefined;
  /** The parent of a sub-agent. */
  parent?: Parent;
  closed(): void;
}

export interface OpenConversation {
  conversation: Conversation;
  runtime: Runtime;
}

const SCHEMA = 1;

/** Rejects with SessionBusyError, CorruptLogError, ConfigurationError. */
export async function openConversation(
  environment: AgentEnvironment,
  profile: AgentProfile,
  opening: OpenRequest,
): Promise<OpenConversation> {
  const handle = await environment.store.open(opening.id, { existing: opening.existing });
  try {
    return await opened(environment, profile, opening, handle);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function opened(
  environment: AgentEnvironment,
  profile: AgentProfile,
  opening: OpenRequest,
  handle: LogHandle,
): Promise<OpenConversation> {
  const { id, history, closed, authorize } = opening;
  const entries = await readLog(handle, id);
  const fresh = entries.length === 0;
  if (!fresh && history) throw new ConfigurationError(`history is for new conversations; ${id} exists already`);
  const parentId = parentIdOf(entries, opening);
  if (opening.existing && (fresh || parentId)) throw new RunchartError('not_found', 'there is no such conversation');
  const [first] = entries;
  const cwd = first?.type === 'conversation' ? first.cwd : opening.cwd;
  const { attended } = opening;
  const { toolbox, policies } = profile;
  const { ports } = environment;
  const redact = await environment.redact();
  const schemas = new Map(opening.output && [['', opening.output]]);
  const hasCalls = !fresh || toolbox.specs.length > 0;
  const loaded = await loadedFor(environment, profile, hasCalls, id);
  const decisions = hasCalls ? await loadDecisions() : undefined;
  if (!fresh) await decisions?.loadSettlements();
  const runtime = new Runtime({ ...profile, ...loaded, id, cwd, handle, entries, ports, redact, schemas, attended });
  const openChild: OpenChild = (child, childProfile) =>
    openConversation(environment, childProfile, { ...child, cwd, attended });
  const subAgents = profile.makeSubAgents?.({ id, runtime, policies, openChild });
  runtime.subAgents = subAgents;
  const head = fresh ? await headOf(environment, opening, runtime) : [];
  const begin = parentId === undefined ? [...head, ...(await repairsOf(handle, entries, runtime, toolbox))] : head;
  const write = async (made: readonly NewEntry[]): Promise<void> => {
    if (made.length > 0) await runtime.log.append(made, ports.now());
  };
  await write(begin);
  try {
    if (subAgents && parentId === undefined) await write(await subAgents.restore());
    runtime.start();
  } catch (error) {
    await subAgents?.close();
    throw error;
  }
  const { newId } = ports;
  const conversation = new Conversation({
    id,
    cwd,
    runtime,
    schemas,
    policies,
    newId,
    authorize,
    decisions,
    closed,
    parentId,
  });
  loaded.observer?.opened({ type: '@runchart.open', conversation });
  if (parentId === undefined && resumesByItself(runtime, policies.onRestart)) conversation.resume();
  return { conversation, runtime };
}

/** All entries of a handle. Throws CorruptLogError. */
export async function readLog(handle: LogHandle, id: string): Promise<LogEntry[]> {
  const log: LogEntry[] = [];
  for await (const entry of handle.read()) {
    const { nextEntry } = await load.entryShape();
    log.push(nextEntry(entry, id, log.length));
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
  { policies, plugins, models: [model] }: AgentProfile,
  hasCalls: boolean,
  id: string,
): Promise<OnDemand & { observer: ConversationObserver | undefined }> {
  const window = thresholdsOf(policies.context, model.contextWindow);
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

/** Decisions made during the wait; and the rest of a cycle that a crash interrupted. */
function resumesByItself({ status, logState }: Runtime, onRestart: Policies['onRestart']): boolean {
  if (onRestart === 'idle') return false;
  if (status === 'waiting') return openCalls(logState).decisions.length > 0;
  return onRestart === 'resume' && isCutOff(logState);
}

async function headOf(
  { ports }: AgentEnvironment,
  { cwd, history, parent }: OpenRequest,
  { images }: Runtime,
): Promise<NewEntry[]> {
  const { now } = ports;
  const head = { runId: null, type: 'conversation' as const, schema: SCHEMA, cwd, createdAt: now() };
  const earlier = history ? await (await load.history()).historyEntries(history, images) : [];
  return [parent ? { ...head, parent } : head, ...earlier];
}

/** The only conversation that may continue this one; undefined where that is the caller. */
function parentIdOf([first]: readonly LogEntry[], { id, parent }: OpenRequest): string | undefined {
  const written = first?.type === 'conversation' ? first.parent : undefined;
  if (!parent) return written?.conversationId;
  const own = !first || (written?.conversationId === parent.conversationId && written.callId === parent.callId);
  if (own) return undefined;
  throw new ConfigurationError(
    `the log ${id} is not that of a sub-agent of ${parent.conversationId}; it is left alone`,
  );
}
