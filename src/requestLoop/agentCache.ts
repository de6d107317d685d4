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
  users: number;
  isCurrent: boolean;
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
  readonly #agents = new Map<string, CachedAgent>();

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  /** The agent for this request; whoever is given it releases it. */
  acquire(model: string, settings: LoopSettings): CachedAgent {
    const version = versionOf(settings);
    const known = this.#agents.get(model);
    const cached = known?.version === version ? known : this.#make(model, version, settings);
    cached.users += 1;
    return cached;
  }

  release(cached: CachedAgent): Promise<void> {
    cached.users -= 1;
    return this.#closeUnused(cached);
  }

  /** The next request gets another one. */
  drop(cached: CachedAgent): void {
    cached.isCurrent = false;
    if (this.#agents.get(cached.model) === cached) this.#agents.delete(cached.model);
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    const all = [...this.#agents.values()];
    for (const cached of all) this.drop(cached);
    await Promise.all(all.map(({ agent }) => agent.close()));
  }

  #make(model: string, version: string, settings: LoopSettings): CachedAgent {
    const serving = agentFor(this.#options.resolveModel(model), this.#options, settings);
    const made = { ...serving, model, version, users: 0, isCurrent: true };
    const before = this.#agents.get(model);
    if (before) {
      this.drop(before);
      void this.#closeUnused(before);
    }
    this.#agents.set(model, made);
    return made;
  }

  async #closeUnused(cached: CachedAgent): Promise<void> {
    if (!cached.isCurrent && cached.users === 0) await cached.agent.close();
  }
}
