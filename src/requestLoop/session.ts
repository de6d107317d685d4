/**
 * The session that a caller keeps between requests and reads during one (docs/internals/contracts.md, 3). Invariant:
 * callers may write here too. A request resets only its own fields, and the log of a run is the source of everything
 * else.
 */
import { addUsage, type Message, type Usage, type UsageCost, zeroUsage } from '../../machines/internal.ts';
import { ConfigurationError } from '../errors.ts';
import { type Ports, portsOf } from '../runtime/hostPorts.ts';
import { anything, callback, check, list, nonEmptyText, object, strings, text } from '../validation.ts';
import { AgentCache, type LoopOptions } from './agentCache.ts';
import { checkedSettings, type LoopSettings } from './settings.ts';
import { CallRegistry, type ToolRegistry } from './toolRegistry.ts';

/** The state of the requests so far. */
export interface Session {
  /** The messages and the reasoning of the conversation. */
  conversation: { messages: Message[]; thoughts: string[] };
  /** Tokens and cost of the last call and of all calls. */
  usage: { lastCallUsage: Usage; sessionTotalUsage: Usage & { costUsd: number | null } };
  /** The query that the request began with. */
  task: { originalQuery: string };
  /** The counters of the current request, and its calls. */
  runtime: {
    currentIteration: number;
    iterationCount: number;
    batchCounter: number;
    consecutiveEmptyResponses: number;
    requestId: string;
    toolRegistry: ToolRegistry;
  };
}

/** The state of the requests. Published as StateManager. */
export interface RequestState {
  /** The state of the requests so far. */
  readonly session: Session;
  /** May be changed between requests. The next request reads them. */
  readonly settings: LoopSettings;
  /** Cancels active requests, and closes the cached agents. */
  close(): Promise<void>;
}

const optionsValidator = object({
  resolveModel: callback,
  tools: list('tools'),
  plugins: list('plugins'),
  instructions: text,
  cwd: nonEmptyText,
  policies: anything,
  settings: anything,
  secrets: strings,
  ports: anything,
});

const freshSession = (): Session => ({
  conversation: { messages: [], thoughts: [] },
  usage: { lastCallUsage: { ...zeroUsage.usage }, sessionTotalUsage: { ...zeroUsage.usage, costUsd: 0 } },
  task: { originalQuery: '' },
  runtime: {
    currentIteration: 0,
    iterationCount: 0,
    batchCounter: 0,
    consecutiveEmptyResponses: 0,
    requestId: '',
    toolRegistry: new CallRegistry(),
  },
});

export class OpenSession implements RequestState {
  readonly session = freshSession();
  readonly settings: LoopSettings;
  readonly agents: AgentCache;
  readonly options: LoopOptions;
  readonly ports: Ports;
  /** The number of active requests. */
  #requests = 0;

  constructor(options: LoopOptions) {
    check('the options of createStateManager', options, optionsValidator, 'createStateManager: ');
    if (!options.resolveModel)
      throw new ConfigurationError('createStateManager needs resolveModel, a function of a name');
    if (!options.tools) throw new ConfigurationError('createStateManager needs tools, a list');
    this.options = options;
    this.ports = portsOf(options.ports);
    this.settings = options.settings ?? {};
    checkedSettings(this.settings);
    this.agents = new AgentCache(options);
  }

  close(): Promise<void> {
    return this.agents.close();
  }

  /** Resets the fields of a request. Calls of another active request stay registered. */
  begin(message: string, requestId: string): void {
    const { task, runtime } = this.session;
    const { toolRegistry } = runtime;
    runtime.currentIteration = 0;
    runtime.iterationCount = 0;
    runtime.batchCounter = 0;
    runtime.consecutiveEmptyResponses = 0;
    runtime.requestId = requestId;
    task.originalQuery = message;
    if (this.#requests === 0) toolRegistry.clear();
    this.#requests += 1;
  }

  end(): void {
    this.#requests -= 1;
  }

  /** Records the usage of the last model call. */
  spend({ usage, costUsd }: UsageCost): void {
    this.session.usage.lastCallUsage = usage;
    this.add({ usage, costUsd });
  }

  /** Adds the usage of a model call or a sub-agent to the total. */
  add(spent: UsageCost): void {
    const { costUsd: before, ...total } = this.session.usage.sessionTotalUsage;
    const { usage, costUsd } = addUsage({ usage: total, costUsd: before }, spent);
    this.session.usage.sessionTotalUsage = { ...usage, costUsd };
  }
}

/**
 * Creates the state of the requests, published as createStateManager. Throws ConfigurationError for an unknown or invalid
 * option or setting.
 */
export const openSession = (options: LoopOptions): RequestState => new OpenSession(options);

/** Throws ConfigurationError for objects that `createStateManager` did not make. */
export function sessionOf(state: Pick<RequestState, 'session'>): OpenSession {
  if (state instanceof OpenSession) return state;
  throw new ConfigurationError('a request needs what createStateManager made');
}
