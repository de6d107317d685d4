/**
 * An agent: a model, tools, plugins and policies, and the conversations held with them. Rule: everything is checked
 * here, at start; what differs between conversations is given when they are opened.
 */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { mergedPolicies, modelsOf } from './agentPolicies.ts';
import type { Content } from './content/content.ts';
import type { Conversation } from './conversation/conversation.ts';
import { type AgentEnvironment, openConversation } from './conversation/open.ts';
import type { RunResult } from './conversation/run.ts';
import { ConfigurationError, RunchartError, SessionBusyError } from './errors.ts';
import { withoutRedaction } from './log/conversationLog.ts';
import type { Redact } from './log/redact.ts';
import type { Model } from './models/model.ts';
import { onDemand } from './onDemand.ts';
import { type AgentOptions, checkOpening, checkOptions, type OpenOptions } from './options.ts';
import { portsOf } from './runtime/hostPorts.ts';
import { type AgentProfile, spawnPlanOf } from './runtime/subAgentPort.ts';
import type { ConversationInfo, LogStore } from './stores/logStore.ts';
import { Toolbox } from './tools/toolbox.ts';

const loadRedact = onDemand(() => import('./log/redact.ts'));
const loadMemory = onDemand(() => import('./stores/memory.ts'));

/** `Output`: the type of final answers, where the agent has a schema for them. */
export interface Agent<Output = unknown> {
  /** What it was made of, for whoever shows it. */
  readonly profile: Pick<AgentProfile, 'models' | 'toolbox' | 'plugins'>;
  /** Creates or restores; starts no work by itself, unless the policy `onRestart` says so. Rejects with SessionBusyError, CorruptLogError, ConfigurationError. */
  open(id?: string, options?: OpenOptions): Promise<Conversation<Output>>;
  list(): Promise<ConversationInfo[]>;
  /** One request in a fresh conversation; nobody can be asked for approval. */
  run(content: Content, options?: { signal?: AbortSignal }): Promise<RunResult<Output>>;
  /** Ends runs as interrupted and lets go of every conversation. */
  close(): Promise<void>;
}

/** Where tools start: the process's directory where there is a process. */
const hereDirectory = (): string => {
  const { process } = globalThis as { process?: { cwd?(): string } };
  return process?.cwd?.() ?? '/';
};

/** An opening that fails holds nothing; whoever asked for it is told why. */
const closeOpened = (opening: Promise<Conversation>): Promise<void> =>
  opening.then(
    (conversation) => conversation.close(),
    () => undefined,
  );

/** A store in memory for an agent that was given none. */
function ownStore(): AgentEnvironment['store'] {
  let store: LogStore | undefined;
  const made = async (): Promise<LogStore> => {
    const { memoryStore } = await loadMemory();
    store ??= memoryStore();
    return store;
  };
  return {
    open: async (id, options) => (await made()).open(id, options),
    list: async () => (await made()).list(),
  };
}

/** A model that has none today may have some tomorrow, if it has a list of them. */
function redactionOf(given: readonly string[] = [], models: readonly Model[]): AgentEnvironment['redact'] {
  const ofModels = models.flatMap(({ secrets }) => (secrets ? [secrets] : []));
  if (given.length + ofModels.length === 0) return async () => withoutRedaction;
  const own = [...given];
  let redact: Redact | undefined;
  return async () => {
    redact ??= (await loadRedact()).redactor(own, ofModels);
    return redact;
  };
}

class OpenAgent implements Agent {
  readonly #options: AgentOptions;
  readonly #environment: AgentEnvironment;
  readonly profile: AgentProfile;
  /** From the moment an opening begins until the conversation is closed. */
  readonly #open = new Map<string, Promise<Conversation>>();
  #closed = false;

  constructor(options: AgentOptions) {
    checkOptions(options);
    const { tools = [], plugins = [], instructions = '', inspect } = options;
    const policies = mergedPolicies(options.policies);
    const models = modelsOf(options.model, policies) as [Model, ...Model[]];
    const unpriced = models.find(({ prices }) => !prices);
    if (policies.limits.costUsd !== false && unpriced) {
      throw new ConfigurationError(`limits.costUsd needs prices, and the model ${unpriced.id} has none`);
    }
    const profile = { models, toolbox: new Toolbox(tools), plugins, policies, instructions };
    const spawns = spawnPlanOf(tools, profile);
    const allModels = new Set([...models, ...(spawns?.models ?? [])]);
    this.#options = options;
    this.profile = { ...profile, makeSubAgents: spawns?.makeSubAgents };
    this.#environment = {
      store: options.store ?? options.ports?.store ?? ownStore(),
      ports: portsOf(options.ports),
      interpreter: options.interpreter,
      redact: redactionOf(options.secrets, [...allModels]),
      inspect,
    };
  }

  async open(id: string = this.#environment.ports.newId(), options: OpenOptions = {}) {
    checkOpening(id, options);
    return this.#openAs(id, options, true);
  }

  list(): Promise<ConversationInfo[]> {
    return this.#environment.store.list();
  }

  async run(content: Content, options: { signal?: AbortSignal } = {}): Promise<RunResult> {
    const conversation = await this.#openAs(this.#environment.ports.newId(), {}, false);
    try {
      const run = conversation.send(content, options);
      const result = await run.result;
      if (result.termination === 'Suspended') await conversation.cancel();
      return result;
    } finally {
      await conversation.close();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#open.values()].map(closeOpened));
  }

  async #openAs(id: string, options: OpenOptions, attended: boolean) {
    this.#mustBeOpen();
    if (this.#open.has(id)) throw new SessionBusyError(`the conversation ${id} is open already; close() it first`);
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
    const { authorize, output, cwd: usual = hereDirectory() } = this.#options;
    const closed = (): void => void this.#open.delete(id);
    const opening = { ...options, id, cwd: options.cwd ?? usual, attended, closed, authorize, output };
    const { conversation } = await openConversation(this.#environment, this.profile, opening);
    if (this.#closed) await conversation.close();
    this.#mustBeOpen();
    return conversation;
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new RunchartError('closed', 'the agent is closed');
  }
}

/** Makes an agent. Throws ConfigurationError for an option that is unknown or cannot work. */
export const createAgent = <S extends StandardSchemaV1 = StandardSchemaV1>(
  options: AgentOptions<S>,
): Agent<StandardSchemaV1.InferOutput<S>> => new OpenAgent(options) as Agent<StandardSchemaV1.InferOutput<S>>;
