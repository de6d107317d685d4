/**
 * A sub-agent as its parent sees it: a copy of its log, and acts that go to the object that runs it. Invariant: the copy changes only
 * with news that the parent's chain records, so each attempt of the parent sees the same. Each call id of the family names one call: a
 * call whose id the parent has for another call has another name here.
 */
import {
  applyEntry,
  canonical,
  type Decision,
  type DecisionReceipt,
  emptyLogState,
  hash,
  type Json,
  type LogEntry,
  type LogState,
  originOf,
  type PendingCall,
  type Settlement,
} from '../../../machines/internal.ts';
import { pendingCalls, unsettledCalls } from '../../conversation/run.ts';
import type { ConversationStatus, Live } from '../../live.ts';
import { errorOfCode } from '../../remote/errorOfCode.ts';
import { LiveFeed } from '../../runtime/status.ts';
import type {
  AgentProfile,
  ChildConversation,
  ChildRequest,
  ConversationCore,
  OpenedChild,
  SubAgents,
} from '../../runtime/subAgentPort.ts';
import type { Act, ActAnswer } from '../../stores/logStore.ts';
import type { RunEnd, SubAgentNews } from './engineAttempt.ts';

type ChildRun = ReturnType<ChildConversation['send']>;

type Asked = { readonly type: string; readonly [key: string]: Json };

/** Receives the live signals of this conversation, until the returned function is called. */
export type FollowLive = (conversationId: string, receive: (signal: Live) => void) => () => void;

interface Surroundings {
  request: ChildRequest;
  followLive: FollowLive;
  /** Sends an act to the sub-agent. */
  ask(act: Act): void;
  /** Names under which a person was asked about its calls. */
  asked: ReadonlySet<string>;
  /** Of the ids of acts, which are the same in each attempt. */
  prefix: string;
}

export class RemoteSubAgent {
  readonly #entries: LogEntry[] = [];
  readonly #logState: LogState = emptyLogState();
  /** The names of its calls in the parent, where they differ. */
  readonly #names = new Map<string, string>();
  /** Its parent needs it no more. */
  isClosed = false;
  /** Present from its opening on. */
  #surroundings: Surroundings | undefined;
  #subAgents: SubAgents | undefined;
  #listeners: ((entry: LogEntry) => void)[] = [];
  /** Acts that make it work, until it rests after their answers. */
  readonly #working = new Map<string, { isAnswered: boolean }>();
  #refusal: RunEnd['error'];
  #unfollow: () => void = () => {};
  /** Of the last opening of the parent. */
  #child: OpenedSubAgent | undefined;

  /** `isWorking`: it was asked to work before. */
  constructor(isWorking: boolean) {
    if (isWorking) this.#working.set('', { isAnswered: true });
  }

  /** The conversation of the parent is open, perhaps again. */
  opened(
    surroundings: Surroundings,
    { makeSubAgents, policies }: AgentProfile,
    entries: readonly LogEntry[],
  ): OpenedChild {
    this.left();
    this.#surroundings = surroundings;
    this.isClosed = false;
    this.#listeners = [];
    const { request, followLive } = surroundings;
    const runtime = this.#core();
    const child = new OpenedSubAgent(this, surroundings);
    this.#child = child;
    this.#unfollow = followLive(request.id, (signal) => runtime.live.next(signal));
    const openChild = () => Promise.reject(new Error('a sub-agent has no sub-agents'));
    // The parent's ids of calls are in there.
    this.#subAgents = makeSubAgents?.({ id: request.id, runtime, policies, openChild });
    for (const entry of entries) this.#apply(entry);
    return { conversation: child, runtime };
  }

  get #with(): Surroundings {
    if (!this.#surroundings) throw new Error('the sub-agent is not open');
    return this.#surroundings;
  }

  #core(): ConversationCore {
    const { request } = this.#with;
    const status = (): ConversationStatus => this.status;
    const subAgents = (): SubAgents | undefined => this.#subAgents;
    return {
      logState: this.#logState,
      log: { entries: this.#entries, listen: (listener) => void this.#listeners.push(listener) },
      live: new LiveFeed(() => null),
      request: { of: () => request.above(), origin: () => originOf(request.above()) },
      submit: () => Promise.reject(new Error('a sub-agent in another place takes no commands')),
      get status() {
        return status();
      },
      get subAgents() {
        return subAgents();
      },
    };
  }

  take(news: SubAgentNews): void {
    if (news.kind === 'entries') {
      for (const entry of news.entries) if (entry.seq === this.#entries.length) this.#apply(entry);
    } else if (news.kind === 'answer') this.#takeAnswer(news.to, news.answer);
    else this.#rest(news.end);
  }

  get length(): number {
    return this.#entries.length;
  }

  get callIds(): Iterable<string> {
    return this.#logState.calls.keys();
  }

  /** It works, or is about to. */
  get isWorking(): boolean {
    return this.#working.size > 0;
  }

  get pending(): readonly PendingCall[] {
    return pendingCalls(this.#logState);
  }

  get unsettled(): readonly PendingCall[] {
    return unsettledCalls(this.#logState);
  }

  get status(): ConversationStatus {
    if (this.isWorking) return 'active';
    return this.#logState.cycle === 'suspended' ? 'waiting' : 'idle';
  }

  /** Its parent needs it no more. The object that runs it holds its log. */
  closed(): void {
    this.isClosed = true;
    this.left();
  }

  /** The conversation of the parent was left: what is still under way there asks nothing any more. */
  left(): void {
    this.#child?.leave();
    this.#unfollow();
    this.#unfollow = () => {};
  }

  /** An act of this id makes it work. */
  begin(actId: string): void {
    this.#working.set(actId, { isAnswered: false });
    this.#refusal = undefined;
  }

  /** The act was not sent. */
  withdraw(actId: string): void {
    this.#working.delete(actId);
  }

  /** The usage of the others has changed. */
  tellSpent(): void {
    if (this.isWorking) this.#child?.tellSpent();
  }

  #takeAnswer(to: string, answer: ActAnswer): void {
    this.#child?.answered(to, answer);
    const work = this.#working.get(to);
    if (!work) return;
    work.isAnswered = true;
    if ('error' in answer) this.#refusal = answer.error;
  }

  #rest(end: RunEnd = { termination: 'Cancelled' }): void {
    for (const [actId, { isAnswered }] of this.#working) if (isAnswered) this.#working.delete(actId);
    if (this.isWorking) return;
    const error = this.#refusal;
    this.#child?.rested(error ? { termination: 'Error', error } : end);
  }

  #apply(stored: LogEntry): void {
    const entry = this.#named(stored);
    this.#entries.push(entry);
    applyEntry(this.#logState, entry);
    for (const listener of this.#listeners) listener(entry);
  }

  /** The entry with the names that its calls have in the parent. */
  #named(entry: LogEntry): LogEntry {
    if (entry.type === 'agent-output' && entry.item.type === 'tool-call') {
      const callId = this.#nameFor(entry.item.callId);
      return callId === entry.item.callId ? entry : { ...entry, item: { ...entry.item, callId } };
    }
    const name = 'callId' in entry && entry.callId !== undefined ? this.#names.get(entry.callId) : undefined;
    if (name === undefined) return entry;
    return {
      ...entry,
      callId: name,
      ...(entry.type === 'decision' && { decision: { ...entry.decision, callId: name } }),
    } as LogEntry;
  }

  /** A person who was asked about a call knows its name, also after a restart. */
  #nameFor(callId: string): string {
    const { asked } = this.#with;
    const isFree = (id: string): boolean => this.#subAgents?.reserveCallId(id) !== false;
    const isNameOf = (id: string): boolean => id.startsWith(`${callId}~`) && /^\d+$/.test(id.slice(callId.length + 1));
    let name = asked.has(callId) ? callId : ([...asked].find(isNameOf) ?? callId);
    for (let count = 2; !asked.has(name) && !isFree(name); count += 1) name = `${callId}~${count}`;
    if (name !== callId) this.#names.set(callId, name);
    return name;
  }

  /** The id that the sub-agent has for a call. */
  ownId(name: string): string {
    for (const [callId, shown] of this.#names) if (shown === name) return callId;
    return name;
  }
}

/** What one opening of the parent asks of the sub-agent. After it was left, its promises stay open. */
class OpenedSubAgent implements ChildConversation {
  readonly #of: RemoteSubAgent;
  readonly #with: Surroundings;
  /** The number of acts with the same content. */
  readonly #acts = new Map<string, number>();
  readonly #answered = new Map<string, (answer: ActAnswer) => void>();
  #rested: ((end: RunEnd) => void)[] = [];
  /** The act with the usage of the family, until its answer. `isStale`: there is more usage since. */
  #spent: { actId: string; isStale: boolean } | undefined;
  #isLeft = false;

  constructor(of: RemoteSubAgent, surroundings: Surroundings) {
    this.#of = of;
    this.#with = surroundings;
  }

  get pending(): readonly PendingCall[] {
    return this.#of.pending;
  }

  get unsettled(): readonly PendingCall[] {
    return this.#of.unsettled;
  }

  get status(): ConversationStatus {
    return this.#of.status;
  }

  /** A repeated task has the same id, so it is carried out once. */
  send(task: string): ChildRun {
    return this.#work({ type: 'send', content: task, options: { messageId: `${this.#with.request.id}-task` } });
  }

  resume(): ChildRun {
    return this.#work({ type: 'resume' });
  }

  async decide(decision: Decision): Promise<DecisionReceipt> {
    const own: Decision = { ...decision, callId: this.#of.ownId(decision.callId) };
    const { receipt } = await this.#ask({ type: 'decide', decision: own as unknown as Json });
    return receipt as DecisionReceipt;
  }

  async settle(callId: string, how: Settlement): Promise<'applied' | 'unknown'> {
    const act = { type: 'settle', callId: this.#of.ownId(callId), how: how as unknown as Json };
    return (await this.#ask(act)).receipt as 'applied' | 'unknown';
  }

  async cancel(): Promise<void> {
    if (this.status !== 'idle') await this.#ask({ type: 'cancel' });
  }

  async close(): Promise<void> {
    if (!this.#isLeft) this.#of.closed();
  }

  leave(): void {
    this.#isLeft = true;
  }

  /** One act is under way at a time, so many sub-agents need few acts. */
  tellSpent(): void {
    if (this.#spent) this.#spent.isStale = true;
    else this.#spent = { actId: this.#send({ type: 'spent' }), isStale: false };
  }

  answered(to: string, answer: ActAnswer): void {
    this.#answered.get(to)?.(answer);
    this.#answered.delete(to);
    if (to !== this.#spent?.actId) return;
    const { isStale } = this.#spent;
    this.#spent = undefined;
    if (isStale) this.#of.tellSpent();
  }

  rested(end: RunEnd): void {
    for (const resolve of this.#rested.splice(0)) resolve(end);
  }

  #work(act: Asked): ChildRun {
    const result = new Promise<RunEnd>((resolve) => this.#rested.push(resolve));
    // Where the parent has lost a tool, its sub-agents still work.
    if (!this.#of.isWorking && !this.#isLeft) this.#of.begin(this.#send(act));
    return { result };
  }

  /** Rejects with the error that the act led to. */
  async #ask(act: Asked): Promise<{ readonly [key: string]: Json }> {
    const answered = new Promise<ActAnswer>((resolve) => this.#answered.set(this.#send(act), resolve));
    const answer = await answered;
    if ('value' in answer) return answer.value as { readonly [key: string]: Json };
    throw errorOfCode(answer.error.code, answer.error.message);
  }

  /** Returns the id of the act. It is the same in each attempt, also where people decide at the same time. */
  #send(act: Asked): string {
    if (this.#isLeft) return '';
    const { prefix, request, ask } = this.#with;
    const name = `${prefix}-${request.id}-${act.type}-${hash(canonical(act))}`;
    const count = (this.#acts.get(name) ?? 0) + 1;
    this.#acts.set(name, count);
    const actId = `${name}-${count}`;
    ask({ ...act, ...(act.type === 'resume' && { resumptionId: actId }), actId });
    return actId;
  }
}
