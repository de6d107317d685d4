/**
 * A conversation that another process holds and that requests of this process use. It has the members of a conversation, so that hosts
 * and handlers use it like one. Invariant: every change is made by the holder. `close` only ends the subscription.
 */
import type { Json, LogEntry } from '../../../machines/internal.ts';
import { fromBase64 } from '../../content/imageFormat.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { Run, RunHandle, RunResult } from '../../conversation/run.ts';
import type { Moment } from '../../conversation/served/messageCheck.ts';
import {
  type RemoteActName,
  type RemoteAnswer,
  RemoteConversation,
  type RemoteOptions,
} from '../../remote/remoteConversation.ts';
import type { StoreLink } from './storeLink.ts';

export class FollowedConversation extends RemoteConversation {
  readonly #link: StoreLink;

  constructor(options: RemoteOptions & { link: StoreLink }) {
    super(options);
    this.#link = options.link;
  }

  get cwd(): string {
    const [first] = this.entries;
    return first?.type === 'conversation' ? first.cwd : '';
  }

  /** The entries themselves. */
  get entries(): readonly LogEntry[] {
    return this.#link.log.entries;
  }

  /** The active run. */
  get runId(): string | undefined {
    return this.#link.log.runId;
  }

  get isEnded(): boolean {
    return this.#link.isEnded;
  }

  /** A process held the conversation at the last `sync`. */
  get isHeld(): boolean {
    return this.#link.isHeld;
  }

  /** Resolves when every entry is here that was stored at the call. Rejects with `not_found`. */
  sync(): Promise<void> {
    return this.#link.sync();
  }

  /** `request`: the key under which a repeated request acts once. */
  request(name: RemoteActName, body: object, request?: string): Promise<RemoteAnswer> {
    return this.#link.act(name, body, request);
  }

  /** The answer of the holder to the request for this run. Rejects where it was refused. */
  async answerTo(run: Run): Promise<RemoteAnswer> {
    return (await this.answers.get(run)) ?? { runId: run.id };
  }

  override openRun(runId: string): RunHandle {
    return super.openRun(runId);
  }

  async rename(title: string): Promise<void> {
    await this.#link.ask({ type: 'rename', title });
  }

  async rewind(messageId: string): Promise<void> {
    await this.#link.ask({ type: 'rewind', messageId });
  }

  /** Rejects with the error of `send` for a message that the holder would refuse. */
  async checkMessage(content: unknown, options: object, moment: Moment): Promise<void> {
    await this.#link.ask({ type: 'check-message', content, options, moment });
  }

  async resultOf(runId: string): Promise<RunResult> {
    const { result } = await this.#link.ask({ type: 'result', runId });
    return result as RunResult;
  }

  /** Undefined if the store no longer has it. */
  async bytesOf(reference: string): Promise<Uint8Array | undefined> {
    const { bytes } = await this.#link.ask({ type: 'blob', reference });
    return typeof bytes === 'string' ? fromBase64(bytes) : undefined;
  }

  async writeState(writes: { [key: string]: Json }): Promise<void> {
    await this.#link.ask({ type: 'write-state', writes });
  }

  async offerPageTools(tools: unknown): Promise<void> {
    await this.#link.ask({ type: 'offer-tools', tools });
  }

  /** Closes the conversation where it is held, so that it can be deleted. */
  async closeHolder(): Promise<void> {
    await this.#link.ask({ type: 'close' });
  }
}

/** The conversation with the members that a followed one has more; undefined for one that this process holds. */
export const followedOf = (conversation: Conversation): FollowedConversation | undefined => {
  const unknownPlace: unknown = conversation;
  return unknownPlace instanceof FollowedConversation ? unknownPlace : undefined;
};
