/**
 * Agents by model and by the version of the settings (agent-loop-contract 2.2). Rule: the same version, the same agent; one
 * that is replaced or dropped is closed when its last request ends.
 */
import { type Agent, createAgent } from '../agent.ts';
import type { Model } from '../models/model.ts';
import type { Plugin } from '../plugins/plugin.ts';
import type { DeepPartial, Policies } from '../policies.ts';
import { type Ports, portsOf } from '../runtime/ports.ts';
import { memoryStore } from '../stores/memory.ts';
import type { LogStore } from '../stores/store.ts';
import type { Tool } from '../tools/tool.ts';
import { type CallsByConversation, loopTool } from './loopTools.ts';
import { type LoopSettings, policiesUnder, versionOf } from './settings.ts';

export interface LoopOptions {
  /** The model of a name that `processRequest` is given. */
  resolveModel(name: string): Model;
  tools: readonly Tool[];
  instructions?: string;
  plugins?: readonly Plugin[];
  cwd?: string;
  policies?: DeepPartial<Policies>;
  settings?: LoopSettings;
  secrets?: readonly string[];
  ports?: Partial<Ports>;
}

/** An agent with those of its conversations that a request is under way in. */
export interface ServingAgent {
  readonly agent: Agent;
  /** Holds the log of a request while it is under way. */
  readonly store: LogStore;
  readonly requests: CallsByConversation;
}

export interface CachedAgent extends ServingAgent {
  readonly model: string;
  readonly version: string;
  /** Requests under way. */
  users: number;
}

/** The model behind a wait. */
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
    yield* model.stream(request, context);
  };
  // Everything else is asked of the model itself, whatever it is made of.
  return new Proxy(model, {
    get: (target, key) => (key === 'stream' ? stream : (Reflect.get(target, key, target) as unknown)),
  });
}

/** What was streamed is heard before anything follows from it. */
const heardFirst = (requests: CallsByConversation): Plugin => ({
  name: 'runchart.request-loop',
  async afterInference({ conversationId }) {
    await requests.get(conversationId)?.heard;
  },
});

/** An agent whose tools run as the callbacks of their request say. */
export function agentFor(model: Model, options: LoopOptions, settings: LoopSettings): ServingAgent {
  const { tools, instructions, plugins = [], cwd, policies, secrets, ports } = options;
  const { toolStrictValidation = false, requestDelayMs = 0 } = settings;
  const store = memoryStore();
  const requests: CallsByConversation = new Map();
  const agent = createAgent({
    model: delayed(model, requestDelayMs, portsOf(ports).setTimer),
    tools: tools.map((tool) => loopTool(tool, requests, toolStrictValidation)),
    plugins: [...plugins, heardFirst(requests)],
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
  /** By model, those that the next request may get. */
  readonly #current = new Map<string, CachedAgent>();
  /** Those that were replaced or dropped and still serve. */
  readonly #leaving = new Set<CachedAgent>();

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  /** The agent for this request; whoever is given it releases it. */
  acquire(model: string, settings: LoopSettings): CachedAgent {
    const version = versionOf(settings);
    const known = this.#current.get(model);
    const cached = known?.version === version ? known : this.#replaced(model, version, settings);
    cached.users += 1;
    return cached;
  }

  async release(cached: CachedAgent): Promise<void> {
    cached.users -= 1;
    if (cached.users === 0 && this.#leaving.delete(cached)) await cached.agent.close();
  }

  /** The next request gets another one. */
  drop(cached: CachedAgent): void {
    if (this.#current.get(cached.model) !== cached) return;
    this.#current.delete(cached.model);
    if (cached.users > 0) this.#leaving.add(cached);
    else void cached.agent.close();
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    const all = [...this.#current.values(), ...this.#leaving];
    this.#current.clear();
    this.#leaving.clear();
    await Promise.all(all.map(({ agent }) => agent.close()));
  }

  #replaced(model: string, version: string, settings: LoopSettings): CachedAgent {
    const serving = agentFor(this.#options.resolveModel(model), this.#options, settings);
    const made = { ...serving, model, version, users: 0 };
    const before = this.#current.get(model);
    if (before) this.drop(before);
    this.#current.set(model, made);
    return made;
  }
}
