/**
 * Follows a conversation that another process holds, and asks its holder to act, through the store that both share. Invariant:
 * entries come from the store, so none is missing while a holder stalls. If nobody holds the conversation, the act is carried out
 * here. An act keeps its id when it is asked again, so it has one effect.
 */
import type { Json } from '../../../machines/internal.ts';
import type { Conversation } from '../../conversation/conversation.ts';
import type { ConversationOverview } from '../../conversation/served/conversationOverview.ts';
import { RunchartError } from '../../errors.ts';
import { onDemand } from '../../onDemand.ts';
import { errorOfCode, requestJson } from '../../remote/errorOfCode.ts';
import type { RemoteActName, RemoteAnswer, RemoteLink } from '../../remote/remoteConversation.ts';
import { RemoteLog } from '../../remote/remoteLog.ts';
import type { Ports } from '../../runtime/hostPorts.ts';
import type { Act, LogStore } from '../../stores/logStore.ts';
import { nextTurn } from '../../timeLimit.ts';

export type SharedStore = Required<Pick<LogStore, 'follow' | 'act'>> & Pick<LogStore, 'stateOf' | 'stillHolds'>;

export const isShared = (store: Partial<LogStore> | undefined): store is SharedStore =>
  store?.follow !== undefined && store.act !== undefined;

export interface LinkOptions {
  id: string;
  store: SharedStore;
  setTimer: Ports['setTimer'];
  newId: Ports['newId'];
  report(error: unknown): void;
  /** Opens the conversation here for the time of the act. Rejects with SessionBusyError if another process holds it. */
  takeOver<T>(act: (conversation: Conversation) => Promise<T>): Promise<T>;
}

/** For a conversation whose holder is gone. */
const loadActs = onDemand(() => import('../../conversation/served/remoteActs.ts'));

/** A holder that dies while a request waits is looked for once more. */
const ATTEMPTS = 2;
/** The longest wait for stored entries. */
const ENTRIES_MS = 10_000;
const WAIT_MS = { first: 250, most: 5000 };

const codeOf = (error: unknown): string | undefined => (RunchartError.isRunchartError(error) ? error.code : undefined);

/** A request of a remote conversation as an act. */
function actOf(name: RemoteActName, body: { readonly [field: string]: unknown }): object {
  switch (name) {
    case 'messages': {
      const { content, request, ...options } = body;
      return { type: 'send', content, options, request };
    }
    case 'decisions':
      return { type: 'decide', decision: body };
    case 'settlements':
      return { ...body, type: 'settle' };
    default:
      return { ...body, type: name };
  }
}

export class StoreLink implements RemoteLink {
  readonly log: RemoteLog;
  readonly #options: LinkOptions;
  readonly #ends: ((error: RunchartError) => void)[] = [];
  /** Callers that wait until the log has a certain number of entries. */
  #waiting: { entries: number; resolve(): void }[] = [];
  #items: AsyncIterator<object> | undefined;
  #stopWait: () => void = () => {};
  /** Why nothing is followed any more. */
  #ended: RunchartError | undefined;
  #isHeld = true;
  #isViewDue = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.log = new RemoteLog(options.id, options.report, (expected, cause) => {
      return new RunchartError('store', `the store gave no usable ${expected}`, { cause });
    });
  }

  get isEnded(): boolean {
    return this.#ended !== undefined;
  }

  /** A process held the conversation at the last `sync`. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** Follows until `close`, or until the conversation is deleted. */
  begin(): void {
    void this.#read();
  }

  whenEnded(act: (error: RunchartError) => void): void {
    this.#ends.push(act);
  }

  /** Resolves when this log has every entry that was stored at the call. Rejects with `not_found` for another log of this id. */
  async sync(): Promise<void> {
    const { store, id } = this.#options;
    if (this.#ended) throw this.#ended;
    const { length, isHeld } = (await store.stateOf?.(id)) ?? (await this.#stateAtHolder());
    this.#isHeld = isHeld;
    if (length === 0 || length < this.log.entries.length) {
      this.#end();
      throw gone();
    }
    await this.#upTo(length);
    if (this.#ended) throw this.#ended;
    if (this.log.entries.length < length)
      throw new RunchartError('unavailable', `the entries of conversation "${id}" have not come in time`);
    this.log.settleStatus();
    // Only the holder has the waiting calls of sub-agents.
    if (this.log.hasSubAgents && this.log.status !== 'idle') await this.#refresh();
  }

  async act(name: RemoteActName, body: object, request?: string): Promise<RemoteAnswer> {
    const answer = await this.ask({ ...actOf(name, { ...body }), ...(request !== undefined && { request }) });
    // The answer covers the entries up to the `run-stop`. The run ends with more entries: wait for these too.
    if (name === 'cancel') await this.sync().catch(() => undefined);
    return answer;
  }

  /** Resolves when the effect of the act is in this log. */
  async ask(act: object): Promise<RemoteAnswer> {
    // The request as JSON; fields that are undefined are left out.
    const asked = { ...(JSON.parse(requestJson(act)) as object), actId: this.#options.newId() } as Act;
    const { entries, ...answer } = (await this.#answer(asked)) as { [key: string]: Json };
    if (typeof entries === 'number') await this.#upTo(entries);
    return answer;
  }

  async errorOf(runId: string): Promise<{ code: string; message: string } | undefined> {
    const { result } = await this.ask({ type: 'result', runId });
    return (result as { error?: { code: string; message: string } }).error;
  }

  async close(): Promise<void> {
    this.#end();
  }

  async #answer(act: Act): Promise<Json> {
    const { store, id, takeOver } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await store.act(id, act);
      } catch (error) {
        if (codeOf(error) !== 'unavailable') throw sameClass(error);
        const { carryOutHere } = await loadActs();
        try {
          return await takeOver((conversation) => carryOutHere(conversation, act));
        } catch (failure) {
          if (codeOf(failure) !== 'session_busy') throw failure;
          if (attempt === ATTEMPTS) throw error;
        }
      }
    }
  }

  async #read(): Promise<void> {
    const { store, id, takeOver } = this.#options;
    for (let wait = WAIT_MS.first; !this.#ended; ) {
      try {
        const items = store.follow(id, this.log.entries.length)[Symbol.asyncIterator]();
        this.#items = items;
        let hasItem = false;
        for (let next = await items.next(); !next.done && !this.#ended; next = await items.next()) {
          hasItem = true;
          wait = WAIT_MS.first;
          this.#take(next.value);
        }
        if (this.#ended) return;
        // The streamed text may be incomplete.
        this.log.interrupt();
        await takeOver(async () => {}).catch((error) => {
          if (codeOf(error) !== 'session_busy') throw error;
        });
        await this.#checkSame();
        if (hasItem) continue;
        // This process has lost its lease of the run that it would take over, and notices that at its next renewal.
        await this.#wait(wait);
        wait = Math.min(2 * wait, WAIT_MS.most);
      } catch (error) {
        const code = codeOf(error);
        if (code === 'unavailable') return this.#end(error as RunchartError);
        if (code === 'not_found' || code === 'closed' || code === 'corrupt') return this.#end();
        await this.#wait(wait);
        wait = Math.min(2 * wait, WAIT_MS.most);
      }
    }
  }

  /** The conversation may have been deleted and made again. */
  async #checkSame(): Promise<void> {
    const { store, id } = this.#options;
    const { length } = (await store.stateOf?.(id)) ?? (await this.#stateAtHolder());
    if (length < this.log.entries.length) throw gone();
  }

  #take(item: object): void {
    if (!('seq' in item)) {
      this.log.takeSignal(item);
      if (this.log.hasSubAgents && tellsOfWaiting(item)) void this.#refresh();
      return;
    }
    this.log.takeEntry(item);
    const { length } = this.log.entries;
    // The repair of a log has no checkpoint.
    if ('cause' in item && item.cause === 'crash') this.log.settleStatus();
    this.#waiting = this.#waiting.filter(({ entries, resolve }) => {
      if (entries <= length) resolve();
      return entries > length;
    });
    if (this.#isViewDue) return;
    this.#isViewDue = true;
    void nextTurn().then(() => {
      this.#isViewDue = false;
      if (!this.#ended) this.log.showView();
    });
  }

  /** Resolves when this number of entries has arrived, or after a time limit. */
  #upTo(entries: number): Promise<void> {
    if (this.log.entries.length >= entries || this.#ended) return Promise.resolve();
    return new Promise((done) => {
      const stop = this.#options.setTimer(ENTRIES_MS, done);
      const resolve = (): void => {
        stop();
        done();
      };
      this.#waiting.push({ entries, resolve });
    });
  }

  async #stateAtHolder(): Promise<{ length: number; isHeld: boolean }> {
    const { overview } = await this.ask({ type: 'overview' });
    return { length: (overview as ConversationOverview).entries, isHeld: true };
  }

  #refresh(): Promise<void> {
    // After a failure, the next request asks again.
    return this.log.refresh(async (changes) => {
      const { overview } = await this.ask({ type: 'overview' });
      this.log.takeOverview(overview as ConversationOverview, changes);
    });
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.#options.setTimer(ms, resolve);
      this.#stopWait = () => {
        stop();
        resolve();
      };
    });
  }

  /** `unavailable`: this process cannot reach the store. */
  #end(reason = gone()): void {
    if (this.#ended) return;
    this.#ended = reason;
    this.#stopWait();
    void this.#items?.return?.();
    this.log.end();
    for (const { resolve } of this.#waiting.splice(0)) resolve();
    const error = new RunchartError('closed', 'the conversation is no longer followed; open it again');
    for (const end of this.#ends) end(error);
  }
}

const gone = (): RunchartError => new RunchartError('not_found', 'there is no such conversation');

/** The class that an embedded conversation throws. */
const sameClass = (error: unknown): unknown =>
  RunchartError.isRunchartError(error) ? errorOfCode(error.code, error.message, error.cause) : error;

/** The progress of a call whose sub-agents wait. */
const tellsOfWaiting = (signal: object): boolean =>
  'update' in signal && typeof signal.update === 'object' && signal.update !== null && 'waiting' in signal.update;
