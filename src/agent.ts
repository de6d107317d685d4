/**
 * An agent: a model, tools, plugins and policies, and the conversations held with them. Invariant: all options are
 * checked here, at the start. Options that differ between conversations are passed to `open()`.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { mergedPolicies, modelsOf } from './agentPolicies.ts';
import type { Content } from './content/content.ts';
import type { Conversation } from './conversation/conversation.ts';
import { type AgentEnvironment, byStore, type OpenRequest, openConversation } from './conversation/open.ts';
import type { Run, RunResult } from './conversation/run.ts';
import type { SendOptions } from './conversation/sendOptions.ts';
import { ConfigurationError, RunchartError, SessionBusyError } from './errors.ts';
import { withoutRedaction } from './log/conversationLog.ts';
import type { Redact } from './log/redact.ts';
import { checkModel, type Model } from './models/model.ts';
import { onDemand } from './onDemand.ts';
import { type AgentOptions, checkListing, checkOpening, checkOptions, type OpenOptions } from './options.ts';
import { type Ports, portsOf } from './runtime/hostPorts.ts';
import { type AgentProfile, type OpenChild, spawnPlanOf } from './runtime/subAgentPort.ts';
import {
  type ConversationInfo,
  type ListOptions,
  type LogStore,
  mayExist,
  noConversation,
  withLookup,
} from './stores/logStore.ts';
import { Toolbox } from './tools/toolbox.ts';

const loadRedact = onDemand(() => import('./log/redact.ts'));
const loadMemory = onDemand(() => import('./stores/memory.ts'));
const loadRows = onDemand(() => import('./stores/rowTable.ts'));

/**
 * An agent: a model, tools and rules. Its conversations are opened here. `Output`: the type of final answers, where the
 * agent has a schema for them.
 */
export interface Agent<Output = unknown> {
  /** The parts of the agent, for programs that display it. */
  readonly profile: Pick<AgentProfile, 'models' | 'toolbox' | 'plugins'> & { readonly store: LogStore };
  /**
   * Creates or restores a conversation. It starts no work, unless the policy `onRestart` requires that. Rejects with
   * SessionBusyError, CorruptLogError, ConfigurationError, and `not_found` for another owner's conversation.
   */
  open(id?: string, options?: OpenOptions): Promise<Conversation<Output>>;
  /** Conversations, the last used first, without sub-agents. Rejects with ConfigurationError. */
  list(options?: ListOptions): Promise<ConversationInfo[]>;
  /** One request in a fresh conversation; nobody can be asked for approval. */
  run(content: Content, options?: SendOptions): Promise<RunResult<Output>>;
  /** Ends runs as interrupted and releases every conversation. */
  close(): Promise<void>;
}

/** Where an engine keeps one conversation: its log, its journal and its clock. `below` opens its sub-agents. */
export type EnginePlace = { store: AgentEnvironment['store']; ports: Partial<Ports>; below: OpenChild };

/** An agent of this process, which an engine can run. The engine decides who may hold a conversation. */
export interface EngineAgent extends Agent {
  readonly profile: AgentProfile & { readonly store: LogStore };
  inEngine(place: EnginePlace): AgentEnvironment;
  openingOf(conversation: { id: string; cwd?: string; owner?: string }): OpenRequest;
}

/** Undefined for an agent that is elsewhere, or wrapped. */
export const engineAgentOf = (agent: Agent): EngineAgent | undefined =>
  'inEngine' in agent ? (agent as EngineAgent) : undefined;

/** Follows the conversations of an agent, also those that others open. Sub-agents are not among them. */
export interface AgentWatcher {
  opened(conversation: Conversation): void;
  /** The agent has closed every conversation. */
  closed(): void;
}

const watchers = new WeakMap<Agent, Set<AgentWatcher>>();

/** The watchers of an agent, to which others may be added. */
export function watchersOf(agent: Agent): Set<AgentWatcher> {
  const agentWatchers = watchers.get(agent) ?? new Set();
  watchers.set(agent, agentWatchers);
  return agentWatchers;
}

const openings = new WeakMap<Agent, ReadonlyMap<string, Promise<Conversation>>>();

/** The conversations of an agent that are open or about to be. */
export const openingsOf = (agent: Agent): Iterable<Promise<Conversation>> => openings.get(agent)?.values() ?? [];

/** Returns the directory in which tools start: the process's directory, if there is a process. */
const hereDirectory = (): string => {
  const { process } = globalThis as { process?: { cwd?(): string } };
  return process?.cwd?.() ?? '/';
};

/** A failed opening holds no resources, and its caller receives the error. */
const closeOpened = (opening: Promise<Conversation>): Promise<void> =>
  opening.then(
    (conversation) => conversation.close(),
    () => undefined,
  );

/** The owner of a conversation that is open or about to be. */
const ownerIn = (opening: Promise<Conversation>): Promise<string | null> =>
  opening.then(
    ({ owner }) => owner,
    () => null,
  );

/** The store in memory of an agent whose options name no store. */
function ownStore(): LogStore {
  let store: LogStore | undefined;
  const made = async (): Promise<LogStore> => {
    const { memoryStore } = await loadMemory();
    store ??= memoryStore();
    return store;
  };
  const own: LogStore = {
    open: async (id, options) => (await made()).open(id, options),
    list: async (options) => (await made()).list(options),
    delete: async (id) => (await made()).delete(id),
  };
  return withLookup(own, async (id, owner) => mayExist(await made(), id, owner));
}

/** A model may declare its list of secrets while the list is still empty, because it can grow later. */
function redactionOf(hostSecrets: readonly string[] = [], models: readonly Model[]): AgentEnvironment['redact'] {
  const ofModels = models.flatMap(({ secrets }) => (secrets ? [secrets] : []));
  if (hostSecrets.length + ofModels.length === 0) return async () => withoutRedaction;
  const own = [...hostSecrets];
  let redact: Redact | undefined;
  return async () => {
    redact ??= (await loadRedact()).redactor(own, ofModels);
    return redact;
  };
}

class OpenAgent implements EngineAgent {
  readonly #options: AgentOptions;
  readonly #environment: AgentEnvironment;
  readonly profile: AgentProfile & { readonly store: LogStore };
  /** Contains a conversation from the start of its opening until it is closed. */
  readonly #open = new Map<string, Promise<Conversation>>();
  #closed = false;

  constructor(options: AgentOptions) {
    checkOptions(options);
    const { tools = [], plugins = [], instructions = '', inspect } = options;
    const policies = mergedPolicies(options.policies);
    const models = modelsOf(options.model, policies) as [Model, ...Model[]];
    const named = { models: { ...options.models }, outputs: { ...options.outputs } };
    for (const model of Object.values(named.models)) checkModel(model);
    const unpriced = [...models, ...Object.values(named.models)].find(({ prices }) => !prices);
    if (policies.limits.costUsd !== false && unpriced) {
      throw new ConfigurationError(`limits.costUsd needs prices, and the model ${unpriced.id} has none`);
    }
    const profile = { models, toolbox: new Toolbox(tools), plugins, policies, instructions, named };
    const spawns = spawnPlanOf(tools, profile);
    const allModels = new Set([...models, ...Object.values(named.models), ...(spawns?.models ?? [])]);
    this.#options = options;
    openings.set(this, this.#open);
    const store = options.store ?? options.ports?.store ?? ownStore();
    this.profile = { ...profile, store, makeSubAgents: spawns?.makeSubAgents };
    this.#environment = {
      store,
      ports: portsOf(options.ports),
      interpreter: options.interpreter,
      logger: options.logger,
      redact: redactionOf(options.secrets, [...allModels]),
      inspect,
    };
  }

  async open(id: string = this.#environment.ports.newId(), options: OpenOptions = {}) {
    checkOpening(id, options);
    return this.#openAs(id, options, true);
  }

  inEngine({ store, ports, below }: EnginePlace): AgentEnvironment {
    return { ...this.#environment, store, ports: { ...this.#environment.ports, ...ports }, below };
  }

  openingOf(place: { id: string; cwd?: string; owner?: string }): OpenRequest {
    return this.#opening(place, true, () => {});
  }

  async list(options: ListOptions = {}): Promise<ConversationInfo[]> {
    checkListing(options);
    // A store that ignores the options returns all rows.
    const [rows, { pageOf }] = await Promise.all([
      byStore(this.#environment, 'list', () => this.#environment.store.list(options)),
      loadRows(),
    ]);
    return pageOf(rows, options);
  }

  async run(content: Content, options: SendOptions = {}): Promise<RunResult> {
    const id = this.#environment.ports.newId();
    const conversation = await this.#openAs(id, {}, false);
    let run: Run | undefined;
    try {
      run = conversation.send(content, options);
      const result = await run.result;
      if (result.termination === 'Suspended') await conversation.cancel();
      return result;
    } finally {
      await conversation.close();
      // If its only message was refused, the caller has no id of the conversation, so it is deleted. With more entries it existed before.
      if (!run && conversation.log().length < 2) await this.profile.store.delete(id).catch(() => undefined);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    const closings = [...this.#open.values()].map(closeOpened);
    await Promise.allSettled(closings);
    for (const watcher of watchers.get(this) ?? []) watcher.closed();
    await Promise.all(closings);
  }

  async #openAs(id: string, options: OpenOptions, attended: boolean) {
    this.#mustBeOpen();
    const open = this.#open.get(id);
    if (open) {
      if (options.owner !== undefined && (await ownerIn(open)) !== options.owner) throw noConversation();
      throw new SessionBusyError(`the conversation ${id} is open already; close() it first`);
    }
    const opening = this.#begin(id, options, attended);
    this.#open.set(id, opening);
    try {
      return await opening;
    } catch (error) {
      this.#open.delete(id);
      throw error;
    }
  }

  async #begin(id: string, options: OpenOptions, attended: boolean) {
    const opening = this.#opening({ ...options, id }, attended, () => void this.#open.delete(id));
    const { conversation } = await openConversation(this.#environment, this.profile, opening);
    if (this.#closed) await conversation.close();
    this.#mustBeOpen();
    for (const watcher of watchers.get(this) ?? []) watcher.opened(conversation);
    return conversation;
  }

  #opening<Place extends { cwd?: string }>(place: Place, attended: boolean, closed: () => void) {
    const { authorize, output, cwd = hereDirectory() } = this.#options;
    return { ...place, cwd: place.cwd ?? cwd, attended, closed, authorize, output };
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new RunchartError('closed', 'the agent is closed');
  }
}

/** Makes an agent. Throws ConfigurationError for an option that is unknown or cannot work. */
export const createAgent = <S extends StandardSchemaV1 = StandardSchemaV1>(
  options: AgentOptions<S>,
): Agent<StandardSchemaV1.InferOutput<S>> => new OpenAgent(options) as Agent<StandardSchemaV1.InferOutput<S>>;
