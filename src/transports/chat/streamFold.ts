/**
 * Folds entries and live signals of a run into the pieces that user interface protocols need: text parts that begin,
 * grow and end, calls with results, and steps. Rule: the pieces depend only on entries and live signals. A log without
 * live signals gives the same texts, calls and ends. Streamed text that never became durable is reported as dropped.
 * Every piece lies between the beginning and the end of a run: entries outside of runs get a run of their own.
 */
import {
  type AgentItem,
  addUsage,
  applyEntry,
  emptyLogState,
  type Json,
  type LogEntry,
  type PendingCall,
  readUsage,
  type StopReason,
  type StoredPart,
  type UsageCost,
  usageOf,
  zeroUsage,
} from '../../../machines/internal.ts';
import { waitingCalls } from '../../conversation/waitingCalls.ts';
import type { Live } from '../../live.ts';
import type { Channel, OfRun, Piece, StreamedCall } from './pieces.ts';

/** A part of a reply that is being streamed. */
interface OpenPart {
  channel: Channel;
  id: string;
  text: string;
  /** The number of its characters that are in the log. */
  durable: number;
  ended: boolean;
}

type Entry<T extends LogEntry['type']> = Extract<LogEntry, { type: T }>;

/** A sub-agent's call has its result in the sub-agent's own log. */
const OVER_WITHIN: readonly StoredPart[] = [{ type: 'text', text: 'This call is over. Its sub-agent has the result.' }];

export class StreamFold {
  readonly #logState = emptyLogState();
  #run: OfRun | undefined;
  /** Pieces outside of every run, and the run that their entries name. */
  #outside: Piece[] = [];
  #outsideOf: OfRun = { runId: '', conversationId: '' };
  /** The run and conversation of the last entry. */
  #entryOf: OfRun = this.#outsideOf;
  /** Calls that have sub-agents. */
  readonly #spawns = new Set<string>();
  /** Shown calls of sub-agents that are not over, with the outer call of each. */
  readonly #within = new Map<string, string>();
  /** The parts of the current reply, in the order of their beginning. */
  #parts: OpenPart[] = [];
  /** Calls of the current reply whose input is streamed, by their index. */
  readonly #inputs = new Map<number, StreamedCall>();
  #spent: UsageCost | undefined;
  #count = 0;
  #step = 0;
  #inStep = false;
  /** The reply of this step is complete: further output belongs to the next step. */
  #replied = false;
  #out: Piece[] = [];

  take(item: LogEntry | Live): Piece[] {
    this.#out = [];
    if ('seq' in item) {
      this.#applyEntry(item);
      this.#entry(item);
    } else if (!item.path) this.#live(item);
    return this.#out;
  }

  /** The pieces that remain at the end of the source. */
  end(): Piece[] {
    this.#out = [];
    this.#surround();
    return this.#out;
  }

  /** The open questions, equal to `conversation.pending`, derived from the log. */
  get pending(): PendingCall[] {
    return waitingCalls(this.#logState, this.#spawns);
  }

  /** A partial log may begin after an entry that it refers to. */
  #applyEntry(entry: LogEntry): void {
    if (entry.type === 'sub-agent') this.#spawns.add(entry.callId);
    if (entry.type === 'tool-suspended') this.#addCall(entry, entry.callId);
    if (entry.type === 'run-suspended') {
      for (const callId of entry.waiting) {
        if (!this.#addCall(entry, callId)) continue;
        applyEntry(this.#logState, { ...entry, type: 'tool-suspended', callId, suspension: 1, reason: '' });
      }
    }
    applyEntry(this.#logState, entry);
    // The fold does not use costs, so the list is emptied to save memory.
    this.#logState.uncounted.length = 0;
  }

  /** Returns false if the call is known already. */
  #addCall(entry: LogEntry, callId: string): boolean {
    if (this.#logState.calls.has(callId)) return false;
    const item = { type: 'tool-call', callId, name: '', args: null } as const;
    applyEntry(this.#logState, { ...entry, type: 'agent-output', item });
    return true;
  }

  #emit(...pieces: Piece[]): void {
    if (this.#run) return void this.#out.push(...pieces);
    if (this.#outside.length === 0) this.#outsideOf = this.#entryOf;
    this.#outside.push(...pieces);
  }

  #live(signal: Live): void {
    // Outside of a run, live signals are not shown.
    if (!this.#run) return;
    switch (signal.type) {
      case 'text-delta':
        return void this.#addText('text', signal.text);
      case 'reasoning-delta':
        return void this.#addText('reasoning', signal.text);
      case 'tool-input-delta':
        return this.#input(signal);
      case 'reset':
        return this.#drop(this.#parts);
      case 'tool-progress':
        this.#emit({ kind: 'progress', callId: signal.callId, update: signal.update });
    }
  }

  #entry(entry: LogEntry): void {
    const { runId, conversationId } = entry;
    this.#spend(usageOf(entry));
    this.#entryOf = { runId: runId ?? this.#entryOf.runId, conversationId };
    switch (entry.type) {
      case 'run-started':
      case 'run-resumed':
        return this.#begin(entry);
      case 'user-message': {
        const { messageId, kind, content } = entry;
        if (kind !== 'steer') this.#spent = undefined;
        return this.#emit({ kind: 'user', messageId, message: kind, content });
      }
      case 'agent-output':
        return this.#item(entry.item);
      case 'model-reply':
        this.#settle();
        this.#replied = true;
        return;
      case 'tool-suspended':
        return this.#suspended(entry);
      case 'tool-result':
        return this.#result(entry);
      case 'state-changed':
        return this.#emit({ kind: 'state', state: Object.fromEntries(this.#logState.state) });
      case 'checkpoint':
        return this.#surround();
      case 'run-suspended':
      case 'run-stop':
        return this.#end(entry);
    }
  }

  #begin({ type, runId, conversationId }: LogEntry): void {
    // The log of the earlier run has no end.
    if (this.#run) this.#close({ reason: 'error', cause: undefined });
    this.#surround();
    this.#run = { runId: runId ?? '', conversationId };
    this.#emit({ kind: 'run-begins', continues: type === 'run-resumed', ...this.#run });
  }

  #end(entry: Entry<'run-stop'> | Entry<'run-suspended'>): void {
    if (!this.#run) this.#open(this.#entryOf);
    this.#close(entry.type === 'run-stop' ? entry : undefined);
  }

  /** Puts a run around the pieces that came outside of every run. */
  #surround(): void {
    if (this.#run || this.#outside.length === 0) return;
    this.#open(this.#outsideOf);
    this.#close(this.pending.length > 0 ? undefined : { reason: 'completed', cause: undefined });
  }

  /** Begins a run. */
  #open(run: OfRun): void {
    this.#run = run;
    this.#emit({ kind: 'run-begins', continues: true, ...run }, ...this.#outside);
    this.#outside = [];
  }

  /** Ends the run; without a stop it is suspended. */
  #close(stop: { reason: StopReason; cause?: string | undefined } | undefined): void {
    const run = this.#run;
    if (!run) return;
    this.#settle();
    const { pending } = this;
    if (!stop) for (const call of pending) this.#show(call);
    for (const callId of [...this.#within.keys()])
      if (!pending.some((call) => call.callId === callId)) this.#closeWithin(callId);
    this.#endStep();
    const spent = this.#spent && { spent: this.#spent };
    if (stop) this.#emit({ kind: 'run-ends', reason: stop.reason, cause: stop.cause, ...run, ...spent });
    else this.#emit({ kind: 'run-waits', calls: pending, ...run, ...spent });
    this.#run = undefined;
  }

  /** Shows a waiting call; for a call with sub-agents, its waiting inner calls. */
  #suspended({ callId }: Entry<'tool-suspended'>): void {
    for (const call of this.pending) {
      if (call.path[0] !== callId) continue;
      this.#show(call);
      this.#emit({ kind: 'waits', call });
    }
  }

  /** The parent's log mentions an inner call only while it waits. */
  #show({ callId, name, args, path: [outer = callId] }: PendingCall): void {
    if (outer === callId || this.#within.has(callId)) return;
    this.#within.set(callId, outer);
    this.#emit({ kind: 'call', callId, name, args, parent: this.#parent });
  }

  #closeWithin(callId: string, { outcome, code }: Partial<Pick<Entry<'tool-result'>, 'outcome' | 'code'>> = {}): void {
    this.#within.delete(callId);
    this.#emit({ kind: 'result', callId, outcome: outcome ?? 'succeeded', code, content: OVER_WITHIN });
  }

  #beginStep(): void {
    if (this.#replied) this.#endStep();
    if (this.#inStep) return;
    this.#step += 1;
    this.#inStep = true;
    this.#emit({ kind: 'step-begins', step: this.#step });
  }

  #endStep(): void {
    if (this.#inStep) this.#emit({ kind: 'step-ends', step: this.#step });
    this.#inStep = false;
    this.#replied = false;
  }

  #openPart(channel: Channel): OpenPart {
    const last = this.#parts.at(-1);
    if (last?.channel === channel && !last.ended) return last;
    if (last) this.#closePart(last);
    this.#count += 1;
    const part = { channel, id: `${this.#run?.runId ?? ''}/${this.#count}`, text: '', durable: 0, ended: false };
    this.#parts.push(part);
    this.#emit({ kind: 'begins', channel, id: part.id });
    return part;
  }

  #closePart(part: OpenPart): void {
    if (part.ended) return;
    part.ended = true;
    this.#emit({ kind: 'ends', channel: part.channel, id: part.id });
  }

  #addText(channel: Channel, delta: string): OpenPart | undefined {
    if (delta === '') return undefined;
    this.#beginStep();
    const part = this.#openPart(channel);
    part.text += delta;
    this.#emit({ kind: 'grows', channel, id: part.id, delta });
    return part;
  }

  /** The input of a call whose provider names it first. The log gives another id to a call whose id it has already. */
  #input({ index, callId, name, text }: Extract<Live, { type: 'tool-input-delta' }>): void {
    if (!this.#inputs.has(index)) {
      const isNew = callId !== undefined && name !== undefined && !this.#logState.calls.has(callId);
      if (!isNew || [...this.#inputs.values()].some((call) => call.callId === callId)) return;
      this.#beginStep();
      this.#inputs.set(index, { callId, name });
      this.#emit({ kind: 'input-begins', callId, name });
    }
    const call = this.#inputs.get(index);
    if (call && text !== '') this.#emit({ kind: 'input-grows', callId: call.callId, delta: text });
  }

  #spend(used: ReturnType<typeof usageOf>): void {
    if (!used) return;
    // A log from elsewhere may lack these fields.
    const { usage = null, costUsd = null } = used as Partial<UsageCost>;
    this.#spent = addUsage(this.#spent ?? zeroUsage, { usage: readUsage(usage as Json), costUsd });
  }

  #drop(parts: readonly OpenPart[]): void {
    for (const part of parts) this.#closePart(part);
    const calls = [...this.#inputs.values()];
    this.#inputs.clear();
    if (parts.length + calls.length > 0) this.#emit({ kind: 'dropped', ids: parts.map(({ id }) => id), calls });
    this.#parts = this.#parts.filter((part) => !parts.includes(part));
  }

  #item(item: AgentItem): void {
    this.#beginStep();
    if (item.type === 'tool-call') return this.#call(item);
    const channel = item.type === 'assistant' ? 'text' : 'reasoning';
    let rest = item.text;
    for (const part of this.#parts.filter((each) => each.channel === channel && each.durable < each.text.length)) {
      const pending = part.text.slice(part.durable);
      const same = rest.startsWith(pending) ? pending.length : pending.startsWith(rest) ? rest.length : 0;
      // The stored text differs from the streamed text: a secret was redacted, or a plugin changed it.
      if (same === 0 && rest !== '') this.#drop([part]);
      part.durable += same;
      rest = rest.slice(same);
    }
    const part = this.#addText(channel, rest);
    if (part) part.durable = part.text.length;
  }

  #call({ callId, name, args, argsText }: Extract<AgentItem, { type: 'tool-call' }>): void {
    const last = this.#parts.at(-1);
    if (last && last.durable === last.text.length) this.#closePart(last);
    for (const [index, streamed] of this.#inputs) if (streamed.callId === callId) this.#inputs.delete(index);
    const parent = this.#parent;
    this.#emit({ kind: 'call', callId, name, args, ...(argsText !== undefined && { argsText }), parent });
  }

  /** The id of the text part that makes the calls of this step. */
  get #parent(): string {
    const message = this.#parts.filter(({ channel }) => channel === 'text').at(-1);
    return message?.id ?? `${this.#run?.runId ?? ''}/calls${this.#step}`;
  }

  #result(entry: Entry<'tool-result'>): void {
    const { callId, outcome, code, content } = entry;
    for (const [inner, outer] of [...this.#within]) if (outer === callId) this.#closeWithin(inner, entry);
    this.#emit({ kind: 'result', callId, outcome, code, content });
  }

  /** After the reply, text that is not durable never will be. */
  #settle(): void {
    this.#drop(this.#parts.filter(({ durable, text }) => durable < text.length));
    for (const part of this.#parts) this.#closePart(part);
    this.#parts = [];
  }
}
