/**
 * An agent whose conversations are held by the workers of a Restate server, with the members of an agent of this process. Invariant:
 * every change is made by the worker that holds the conversation. `close` only ends the subscriptions of this process.
 */
import type { Agent } from '../agent.ts';
import type { Content } from '../content/content.ts';
import type { Conversation } from '../conversation/conversation.ts';
import type { RunResult } from '../conversation/run.ts';
import type { SendOptions } from '../conversation/sendOptions.ts';
import { ConfigurationError, DecisionRefusedError, RunchartError, SessionBusyError } from '../errors.ts';
import type { Model } from '../models/model.ts';
import { checkListing, checkOpening, type OpenOptions } from '../options.ts';
import { platformPorts } from '../runtime/hostPorts.ts';
import { type ConversationInfo, type ListOptions, type LogStore, noConversation } from '../stores/logStore.ts';
import { awaitAll } from '../timeLimit.ts';
import { Toolbox } from '../tools/toolbox.ts';
import { FollowedConversation } from '../transports/followed/followedConversation.ts';
import { StoreLink } from '../transports/followed/storeLink.ts';
import { checkOptionsOf, object } from '../validation.ts';
import type { BlobStore } from './blobStore.ts';
import { blobStoreOf, storeValidator } from './blobsOfStore.ts';
import { type LiveHub, processHub } from './liveHub.ts';
import { RestateStore } from './restateStore.ts';
import { hubValidator } from './serveAgent.ts';

/** The options of `restateAgent`. */
export interface RestateAgentOptions {
  /** The ingress address of the server, such as `http://127.0.0.1:8080`. */
  ingress: string;
  /** The name under which the workers serve the agent. Default: `runchart`. */
  service?: string;
  /** The source of live signals. Default: workers in this process; other workers then send entries only. */
  hub?: object;
  /** The blob store of the workers. Then large messages and entries do not pass through the server. */
  store?: BlobStore | LogStore;
}

const text = { expected: 'a text', test: (value: unknown) => typeof value === 'string' && value !== '' };
const url = {
  expected: 'an http address',
  test: (value: unknown) => typeof value === 'string' && /^https?:\/\//.test(value),
};
const optionsValidator = object({ ingress: url, service: text, hub: hubValidator, store: storeValidator });

/**
 * An agent whose conversations are held by the workers of a Restate server, with the members of an agent of this process. Throws
 * ConfigurationError for an invalid option.
 */
export function restateAgent(options: RestateAgentOptions): Agent {
  checkOptionsOf('restateAgent', options, optionsValidator);
  if (options.ingress === undefined) throw new ConfigurationError('restateAgent() needs the option ingress');
  return new RestateAgent(options);
}

/** The workers have the models. */
const modelElsewhere: Model = {
  id: 'restate',
  stream() {
    throw new ConfigurationError('the model is called by the workers of the engine');
  },
};

/** Nobody can be asked. False if a call waits for something else, or if a denial is refused. */
async function denyAll(conversation: Conversation, { pending }: RunResult): Promise<boolean> {
  if (pending.some(({ reason }) => reason !== 'permission')) return false;
  try {
    for (const { callId, suspension, name } of pending) {
      const reason = `${name} needs approval, and nobody can be asked here. It was not run.`;
      await conversation.decide({ callId, suspension, action: 'deny', reason });
    }
    return pending.length > 0;
  } catch (error) {
    if (error instanceof DecisionRefusedError) return false;
    throw error;
  }
}

class RestateAgent implements Agent {
  readonly profile: Agent['profile'] & { readonly store: RestateStore };
  readonly #open = new Set<FollowedConversation>();
  #isClosed = false;

  constructor({ ingress, service = 'runchart', hub, store: contents }: RestateAgentOptions) {
    const liveHub = (hub as LiveHub | undefined) ?? processHub;
    const store = new RestateStore({ ingress, service, hub: liveHub, store: blobStoreOf(contents) });
    this.profile = { models: [modelElsewhere], toolbox: new Toolbox([]), plugins: [], store };
  }

  async open(id: string = platformPorts.newId(), options: OpenOptions = {}): Promise<Conversation> {
    checkOpening(id, options);
    if (this.#isClosed) throw new RunchartError('closed', 'the agent is closed');
    const { existing = false, owner, cwd, history } = options;
    if (history) throw new ConfigurationError('a conversation of an engine takes no history');
    const { store } = this.profile;
    if (existing && (await store.stateOf(id)).length === 0) throw noConversation();
    const { newId, setTimer } = platformPorts;
    const wanted = { type: 'open', ...(owner !== undefined && { owner }), ...(cwd !== undefined && { cwd }) };
    await store.act(id, { ...wanted, actId: newId() });
    const link = new StoreLink({
      id,
      store,
      setTimer,
      newId,
      report: (error) => console.warn({ event: 'subscriber-failed', error }),
      takeOver: () => Promise.reject(new SessionBusyError(`the conversation ${id} is held by the engine`)),
    });
    const conversation = new FollowedConversation({ link, setTimer, newId });
    link.whenEnded(() => this.#open.delete(conversation));
    this.#open.add(conversation);
    link.begin();
    try {
      await conversation.sync();
      const [first] = conversation.log();
      // Only an opening by its id alone shows a sub-agent.
      if (existing && first?.type === 'conversation' && first.parent) throw noConversation();
    } catch (error) {
      await conversation.close();
      throw error;
    }
    // It has the members that a host uses.
    return conversation as unknown as Conversation;
  }

  async list(options: ListOptions = {}): Promise<ConversationInfo[]> {
    checkListing(options);
    return this.profile.store.list(options);
  }

  async run(content: Content, options: SendOptions = {}): Promise<RunResult> {
    const conversation = await this.open();
    try {
      let result = await conversation.send(content, options).result;
      while (result.termination === 'Suspended' && (await denyAll(conversation, result))) {
        result = await conversation.resume().result;
      }
      if (result.termination === 'Suspended') await conversation.cancel();
      return result;
    } finally {
      await conversation.close();
    }
  }

  /** Ends the subscriptions of this process. Runs continue where they are. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await awaitAll([...this.#open].map((conversation) => conversation.close()));
  }
}
