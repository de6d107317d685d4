/**
 * An agent: a model, tools, plugins and policies, and the conversations held with them. Rule: everything is checked
 * here, at start; what differs between conversations is given when they are opened.
 */
import { type LogEntry, learn, type Message, type NewEntry, nothingKnown } from '../machines/index.ts';
import { type AgentOptions, checkOptions, type InspectObserver } from './agentOptions.ts';
import type { Content } from './content.ts';
import { Conversation } from './conversation.ts';
import { ConfigurationError, RunchartError, SessionBusyError } from './errors.ts';
import { historyEntries } from './history.ts';
import type { Model } from './models/model.ts';
import { mergedPolicies, modelsOf, type Policies } from './options.ts';
import { type Ports, platformPorts } from './ports.ts';
import { type Redact, redactor } from './redact.ts';
import type { RunResult } from './run.ts';
import { Runtime } from './runtime.ts';
import { memoryStore } from './stores/memory.ts';
import type { ConversationInfo, LogHandle, LogStore } from './stores/store.ts';
import { Toolbox } from './tools/prepare.ts';

export interface Agent {
  /** Creates or restores; starts no work by itself. Rejects with SessionBusyError, CorruptLogError, ConfigurationError. */
  open(id?: string, options?: { history?: readonly Message[]; cwd?: string }): Promise<Conversation>;
  list(): Promise<ConversationInfo[]>;
  /** One request in a fresh conversation; nobody can be asked for approval. */
  run(content: Content, options?: { signal?: AbortSignal }): Promise<RunResult>;
  /** Ends runs as interrupted and lets go of every conversation. */
  close(): Promise<void>;
}

const SCHEMA = 1;
/** Where tools start: the process's directory where there is a process. */
const hereDirectory = (): string => {
  const { process } = globalThis as { process?: { cwd?(): string } };
  return process?.cwd?.() ?? '/';
};

/** An observer sees everything and can stop nothing. */
const harmless =
  (inspect: InspectObserver): InspectObserver =>
  (event) => {
    try {
      inspect(event);
    } catch {
      // What it throws is its own affair: it is called in the middle of a step.
    }
  };

class OpenAgent implements Agent {
  readonly #options: AgentOptions;
  readonly #policies: Policies;
  readonly #models: [Model, ...Model[]];
  readonly #toolbox: Toolbox;
  readonly #store: LogStore;
  readonly #ports: Ports;
  readonly #redact: Redact;
  readonly #open = new Map<string, Conversation | undefined>();
  #closed = false;

  constructor(options: AgentOptions) {
    checkOptions(options);
    const tools = options.tools ?? [];
    this.#options = options;
    this.#policies = mergedPolicies(options.policies);
    this.#models = modelsOf(options.model, this.#policies) as [Model, ...Model[]];
    const unpriced = this.#models.find(({ prices }) => !prices);
    if (this.#policies.limits.costUsd !== false && unpriced) {
      throw new ConfigurationError(`limits.costUsd needs prices, and the model ${unpriced.id} has none`);
    }
    this.#toolbox = new Toolbox(tools);
    this.#store = options.store ?? memoryStore();
    this.#ports = { ...platformPorts, ...options.ports };
    this.#redact = redactor(
      options.secrets ?? [],
      this.#models.map(({ secrets }) => secrets ?? []),
    );
  }

  async open(id: string = this.#ports.newId(), options: { history?: readonly Message[]; cwd?: string } = {}) {
    return this.#openAs(id, options, true);
  }

  list(): Promise<ConversationInfo[]> {
    return this.#store.list();
  }

  async run(content: Content, options: { signal?: AbortSignal } = {}): Promise<RunResult> {
    const conversation = await this.#openAs(this.#ports.newId(), {}, false);
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
    await Promise.all([...this.#open.values()].map((conversation) => conversation?.close()));
  }

  async #openAs(id: string, options: { history?: readonly Message[]; cwd?: string }, attended: boolean) {
    if (this.#closed) throw new RunchartError('closed', 'the agent is closed');
    if (this.#open.has(id)) throw new SessionBusyError(`the conversation ${id} is open already; close() it first`);
    this.#open.set(id, undefined);
    try {
      const handle = await this.#store.open(id);
      const conversation = await this.#build(id, handle, options, attended).catch(async (error: unknown) => {
        await handle.close();
        throw error;
      });
      this.#open.set(id, conversation);
      return conversation;
    } catch (error) {
      this.#open.delete(id);
      throw error;
    }
  }

  async #build(
    id: string,
    handle: LogHandle,
    options: { history?: readonly Message[]; cwd?: string },
    attended: boolean,
  ) {
    const entries: LogEntry[] = [];
    for await (const entry of handle.read()) entries.push(entry);
    const fresh = entries.length === 0;
    if (!fresh && options.history)
      throw new ConfigurationError(`history is for new conversations; ${id} exists already`);
    const known = nothingKnown();
    for (const entry of entries) learn(known, entry);
    const cwd = fresh ? (options.cwd ?? this.#options.cwd ?? hereDirectory()) : known.cwd;
    const runtime = this.#runtime(id, cwd, handle, entries, attended);
    const first = fresh ? this.#firstEntries(cwd, options.history) : runtime.repairs();
    if (first.length > 0) await runtime.log.append(first, this.#ports.now());
    runtime.start();
    return this.#conversation(id, cwd, runtime);
  }

  #firstEntries(cwd: string, history: readonly Message[] | undefined): NewEntry[] {
    const { now, newId } = this.#ports;
    const head: NewEntry = { runId: null, type: 'conversation', schema: SCHEMA, cwd, createdAt: now() };
    return [head, ...(history ? historyEntries(history, newId) : [])];
  }

  #runtime(id: string, cwd: string, handle: LogHandle, entries: LogEntry[], attended: boolean): Runtime {
    const { instructions = '', plugins = [], inspect } = this.#options;
    return new Runtime({
      id,
      cwd,
      handle,
      entries,
      instructions,
      models: this.#models,
      toolbox: this.#toolbox,
      plugins,
      policies: this.#policies,
      ports: this.#ports,
      redact: this.#redact,
      attended,
      ...(inspect && { inspect: harmless(inspect) }),
    });
  }

  #conversation(id: string, cwd: string, runtime: Runtime): Conversation {
    return new Conversation({
      id,
      cwd,
      runtime,
      policies: this.#policies,
      newId: this.#ports.newId,
      authorize: this.#options.authorize,
      closed: () => this.#open.delete(id),
    });
  }
}

/** Makes an agent. Throws ConfigurationError for an option that is unknown or cannot work. */
export const createAgent = (options: AgentOptions): Agent => new OpenAgent(options);
