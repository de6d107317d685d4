/**
 * What a caller of the contract keeps between requests and reads while one runs (agent-loop-contract 3). Rule: callers may
 * write here too; a request resets what is its own, and what a run knows is written here as the log tells of it.
 */
import { addUsage, type Message, type Usage, type UsageCost, zeroUsage } from '../../machines/internal.ts';
import { ConfigurationError } from '../errors.ts';
import { type Ports, portsOf } from '../runtime/ports.ts';
import { anything, callback, check, list, nonEmptyText, object, strings, text } from '../validation.ts';
import { AgentCache, type LoopOptions } from './agentCache.ts';
import { checkedSettings, type LoopSettings } from './settings.ts';
import { CallRegistry, type ToolRegistry } from './toolRegistry.ts';

export interface Session {
  conversation: { messages: Message[]; thoughts: string[] };
  usage: { lastCallUsage: Usage; sessionTotalUsage: Usage & { costUsd: number | null } };
  task: { originalQuery: string };
  runtime: {
    currentIteration: number;
    iterationCount: number;
    batchCounter: number;
    consecutiveEmptyResponses: number;
    requestId: string;
    toolRegistry: ToolRegistry;
  };
}

/** Published as StateManager. */
export interface RequestState {
  readonly session: Session;
  /** May be changed between requests: the next one reads them. */
  readonly settings: LoopSettings;
  /** Ends what is under way, and lets go of the cached agents. */
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
  /** Requests under way. */
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

  /** What is reset as a request begins; the calls of another one under way stay registered. */
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

  /** The last model call used this. */
  spend({ usage, costUsd }: UsageCost): void {
    this.session.usage.lastCallUsage = usage;
    this.add({ usage, costUsd });
  }

  /** It counts in the total: what a model call used, or a sub-agent. */
  add(spent: UsageCost): void {
    const { costUsd: before, ...total } = this.session.usage.sessionTotalUsage;
    const { usage, costUsd } = addUsage({ usage: total, costUsd: before }, spent);
    this.session.usage.sessionTotalUsage = { ...usage, costUsd };
  }
}

/** Published as createStateManager. Throws ConfigurationError for an option or a setting that is unknown or cannot work. */
export const openSession = (options: LoopOptions): RequestState => new OpenSession(options);

/** Throws ConfigurationError for what `createStateManager` did not make. */
export function sessionOf(given: Pick<RequestState, 'session'>): OpenSession {
  if (given instanceof OpenSession) return given;
  throw new ConfigurationError('a request needs what createStateManager made');
}
