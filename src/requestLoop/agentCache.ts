/**
 * The agents of a session, by model and by version of the settings (docs/internals/contracts.md, 2.2). Invariant: one
 * version has one agent. An agent that is replaced or dropped is closed after its last request.
 */
import { type Agent, createAgent } from '../agent.ts';
import type { DeepPartial, Policies } from '../agentPolicies.ts';
import type { Model } from '../models/model.ts';
import type { Plugin } from '../plugins/plugin.ts';
import { type Ports, portsOf } from '../runtime/hostPorts.ts';
import type { LogStore } from '../stores/logStore.ts';
import { memoryStore } from '../stores/memory.ts';
import { awaitAll } from '../timeLimit.ts';
import type { Tool } from '../tools/tool.ts';
import { type CallsByConversation, loopTool } from './loopTools.ts';
import { type LoopSettings, policiesUnder, versionOf } from './settings.ts';

/** The options of `createStateManager`. */
export interface LoopOptions {
  /** Returns the model for a name that `processRequest` receives. */
  resolveModel(name: string): Model;
  /** The tools that the model may call. */
  tools: readonly Tool[];
  /** The system text of every request. Default: none. */
  instructions?: string;
  /** Code that runs in the phases of a run. Default: none. */
  plugins?: readonly Plugin[];
  /** The directory in which tools start. Default: the directory of the process. */
  cwd?: string;
  /** Policies over the preset `requestLoop`. */
  policies?: DeepPartial<Policies>;
  /** Settings of the loop, which you may change between requests. */
  settings?: LoopSettings;
  /** Values that must never be logged; a model's own are added. */
  secrets?: readonly string[];
  /** The clock, ids, randomness and timers. Default: those of the platform. */
  ports?: Partial<Ports>;
}

/** An agent with its conversations that have an active request. */
export interface ServingAgent {
  readonly agent: Agent;
  /** Contains the log of each active request. */
  readonly store: LogStore;
  readonly requests: CallsByConversation;
}

export interface CachedAgent extends ServingAgent {
  readonly model: string;
  readonly version: string;
  /** The number of active requests. */
  users: number;
}

/** Adds a delay before each call of the model. */
function delayed(model: Model, ms: number, setTimer: Ports['setTimer']): Model {
  if (ms === 0) return model;
  const pause = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      const stop = setTimer(ms, resolve);
      const aborted = (): void => {
        stop();
        reject(signal.reason);
      };
      if (signal.aborted) aborted();
      else signal.addEventListener('abort', aborted, { once: true });
    });
  const stream: Model['stream'] = async function* (request, context) {
    await pause(context.signal);
    yield* await model.stream(request, context);
  };
  // The model itself answers all other properties, whatever object it is.
  return new Proxy(model, {
    get: (target, key) => (key === 'stream' ? stream : (Reflect.get(target, key, target) as unknown)),
  });
}

/** The caller has processed the streamed text before the run continues. */
const streamFirst = (requests: CallsByConversation): Plugin => ({
  name: 'runchart.request-loop',
  async afterInference({ conversationId }) {
    await requests.get(conversationId)?.heard;
  },
});

/** Makes an agent whose tools run through the callbacks of their request. */
export function agentFor(model: Model, options: LoopOptions, settings: LoopSettings): ServingAgent {
  const { tools, instructions, plugins = [], cwd, policies, secrets, ports } = options;
  const { toolStrictValidation = false, requestDelayMs = 0 } = settings;
  const store = memoryStore();
  const requests: CallsByConversation = new Map();
  const agent = createAgent({
    model: delayed(model, requestDelayMs, portsOf(ports).setTimer),
    tools: tools.map((tool) => loopTool(tool, requests, toolStrictValidation)),
    plugins: [...plugins, streamFirst(requests)],
    policies: policiesUnder(policies, settings),
    store,
    ...(instructions !== undefined && { instructions }),
    ...(cwd !== undefined && { cwd }),
    ...(secrets && { secrets }),
    ...(ports && { ports }),
  });
  return { agent, store, requests };
}

export class AgentCache {
  readonly #options: LoopOptions;
  /** The agents of the next requests, by model. */
  readonly #current = new Map<string, CachedAgent>();
  /** Replaced or dropped agents that still serve. */
  readonly #retiring = new Set<CachedAgent>();

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  /** Returns the agent for this request. The caller must release it. */
  acquire(model: string, settings: LoopSettings): CachedAgent {
    const version = versionOf(settings);
    const existing = this.#current.get(model);
    const cached = existing?.version === version ? existing : this.#replaceAgent(model, version, settings);
    cached.users += 1;
    return cached;
  }

  async release(cached: CachedAgent): Promise<void> {
    cached.users -= 1;
    if (cached.users === 0 && this.#retiring.delete(cached)) await cached.agent.close();
  }

  /** The next request gets another agent. */
  drop(cached: CachedAgent): void {
    if (this.#current.get(cached.model) !== cached) return;
    this.#current.delete(cached.model);
    if (cached.users > 0) this.#retiring.add(cached);
    else void cached.agent.close();
  }

  /** Cancels active requests. */
  async close(): Promise<void> {
    const all = [...this.#current.values(), ...this.#retiring];
    this.#current.clear();
    this.#retiring.clear();
    await awaitAll(all.map(({ agent }) => agent.close()));
  }

  #replaceAgent(model: string, version: string, settings: LoopSettings): CachedAgent {
    const serving = agentFor(this.#options.resolveModel(model), this.#options, settings);
    const added = { ...serving, model, version, users: 0 };
    const previous = this.#current.get(model);
    if (previous) this.drop(previous);
    this.#current.set(model, added);
    return added;
  }
}
