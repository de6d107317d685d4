/**
 * A run as protocols of user interfaces speak of it: parts of text that begin, grow and end, calls with their results, steps.
 * Rule: what is said follows from entries and live signals alone; a log without its live signals gives the same texts, calls and
 * ends; what was streamed and never became durable is named as dropped.
 */
import type {
  AgentItem,
  Json,
  LogEntry,
  MessageKind,
  StopReason,
  StoredPart,
  ToolOutcome,
} from '../../machines/internal.ts';
import type { Live } from '../live.ts';

export type Channel = 'text' | 'reasoning';
interface OfRun {
  runId: string;
  conversationId: string;
}
export interface WaitingCall {
  callId: string;
  name: string;
  suspension: number;
  reason: string;
  payload?: Json;
}

export type Piece =
  /** `continues`: the cycle of an earlier run. */
  | ({ kind: 'run-begins'; continues: boolean } & OfRun)
  | ({ kind: 'run-ends'; reason: StopReason; cause: string | undefined } & OfRun)
  | ({ kind: 'run-waits'; calls: readonly WaitingCall[] } & OfRun)
  | { kind: 'step-begins' | 'step-ends'; step: number }
  | { kind: 'user'; messageId: string; message: MessageKind; content: readonly StoredPart[] }
  | { kind: 'begins' | 'ends'; channel: Channel; id: string }
  | { kind: 'grows'; channel: Channel; id: string; delta: string }
  /** Parts that count for nothing. */
  | { kind: 'dropped'; ids: readonly string[] }
  | {
      kind: 'call';
      callId: string;
      name: string;
      args: Json;
      argsText?: string /** of the message that makes it */;
      parent: string;
    }
  | { kind: 'progress'; callId: string; update: Json }
  | ({ kind: 'waits' } & WaitingCall)
  | { kind: 'result'; callId: string; outcome: ToolOutcome; code: string | undefined; content: readonly StoredPart[] }
  | { kind: 'state'; state: { [key: string]: Json } };

/** A part of a reply, as far as it was said. */
interface OpenPart {
  channel: Channel;
  id: string;
  said: string;
  /** How much of it stands in the log. */
  durable: number;
  ended: boolean;
}

type Entry<T extends LogEntry['type']> = Extract<LogEntry, { type: T }>;

export class StreamFold {
  #run: OfRun | undefined;
  /** Of the reply under way, in the order in which they began. */
  #parts: OpenPart[] = [];
  #count = 0;
  #step = 0;
  #inStep = false;
  /** The reply of the step is whole: what the model says next belongs to another step. */
  #replied = false;
  readonly #waiting = new Map<string, WaitingCall>();
  readonly #names = new Map<string, string>();
  #state: { [key: string]: Json } = {};
  #out: Piece[] = [];

  take(item: LogEntry | Live): Piece[] {
    this.#out = [];
    if ('seq' in item) this.#entry(item);
    else if (!item.path) this.#live(item);
    return this.#out;
  }

  #live(signal: Live): void {
    // Between runs nobody is told of one.
    if (!this.#run) return;
    switch (signal.type) {
      case 'text-delta':
        return void this.#say('text', signal.text);
      case 'reasoning-delta':
        return void this.#say('reasoning', signal.text);
      case 'reset':
        return this.#drop(this.#parts);
      case 'tool-progress':
        this.#out.push({ kind: 'progress', callId: signal.callId, update: signal.update });
    }
  }

  #entry(entry: LogEntry): void {
    switch (entry.type) {
      case 'run-started':
      case 'run-resumed':
        return this.#begin(entry);
      case 'user-message': {
        const { messageId, kind, content } = entry;
        this.#out.push({ kind: 'user', messageId, message: kind, content });
        return;
      }
      case 'agent-output':
        return this.#item(entry.item);
      case 'model-reply':
        this.#settle();
        this.#replied = true;
        return;
      case 'tool-suspended': {
        const { callId, suspension, reason, payload } = entry;
        const call = { callId, name: this.#names.get(callId) ?? '', suspension, reason };
        this.#waiting.set(callId, payload === undefined ? call : { ...call, payload });
        this.#out.push({ kind: 'waits', ...call, ...(payload !== undefined && { payload }) });
        return;
      }
      case 'tool-result':
        return this.#result(entry);
      case 'state-changed':
        this.#state = { ...this.#state, ...entry.writes };
        this.#out.push({ kind: 'state', state: this.#state });
        return;
      case 'run-suspended':
      case 'run-stop':
        return this.#end(entry);
    }
  }

  #begin({ type, runId, conversationId }: LogEntry): void {
    this.#run = { runId: runId ?? '', conversationId };
    this.#out.push({ kind: 'run-begins', continues: type === 'run-resumed', ...this.#run });
  }

  #end(entry: Entry<'run-stop'> | Entry<'run-suspended'>): void {
    if (!this.#run) return;
    this.#settle();
    this.#endStep();
    if (entry.type === 'run-suspended') {
      this.#out.push({ kind: 'run-waits', calls: [...this.#waiting.values()], ...this.#run });
    } else {
      this.#waiting.clear();
      this.#out.push({ kind: 'run-ends', reason: entry.reason, cause: entry.cause, ...this.#run });
    }
    this.#run = undefined;
  }

  #beginStep(): void {
    if (this.#replied) this.#endStep();
    if (this.#inStep) return;
    this.#step += 1;
    this.#inStep = true;
    this.#out.push({ kind: 'step-begins', step: this.#step });
  }

  #endStep(): void {
    if (this.#inStep) this.#out.push({ kind: 'step-ends', step: this.#step });
    this.#inStep = false;
    this.#replied = false;
  }

  #open(channel: Channel): OpenPart {
    const last = this.#parts.at(-1);
    if (last?.channel === channel && !last.ended) return last;
    if (last) this.#close(last);
    this.#count += 1;
    const part = { channel, id: `${this.#run?.runId ?? ''}/${this.#count}`, said: '', durable: 0, ended: false };
    this.#parts.push(part);
    this.#out.push({ kind: 'begins', channel, id: part.id });
    return part;
  }

  #close(part: OpenPart): void {
    if (part.ended) return;
    part.ended = true;
    this.#out.push({ kind: 'ends', channel: part.channel, id: part.id });
  }

  #say(channel: Channel, delta: string): OpenPart | undefined {
    if (delta === '') return undefined;
    this.#beginStep();
    const part = this.#open(channel);
    part.said += delta;
    this.#out.push({ kind: 'grows', channel, id: part.id, delta });
    return part;
  }

  #drop(parts: readonly OpenPart[]): void {
    for (const part of parts) this.#close(part);
    if (parts.length > 0) this.#out.push({ kind: 'dropped', ids: parts.map(({ id }) => id) });
    this.#parts = this.#parts.filter((part) => !parts.includes(part));
  }

  #item(item: AgentItem): void {
    this.#beginStep();
    if (item.type === 'tool-call') return this.#call(item);
    const channel = item.type === 'assistant' ? 'text' : 'reasoning';
    let rest = item.text;
    for (const part of this.#parts.filter((each) => each.channel === channel && each.durable < each.said.length)) {
      const pending = part.said.slice(part.durable);
      const same = rest.startsWith(pending) ? pending.length : pending.startsWith(rest) ? rest.length : 0;
      // What was streamed is not what was kept: a secret was taken out, or somebody changed it.
      if (same === 0 && rest !== '') this.#drop([part]);
      part.durable += same;
      rest = rest.slice(same);
    }
    const part = this.#say(channel, rest);
    if (part) part.durable = part.said.length;
  }

  #call({ callId, name, args, argsText }: Extract<AgentItem, { type: 'tool-call' }>): void {
    const last = this.#parts.at(-1);
    if (last && last.durable === last.said.length) this.#close(last);
    this.#names.set(callId, name);
    const message = this.#parts.filter(({ channel }) => channel === 'text').at(-1);
    const parent = message?.id ?? `${this.#run?.runId ?? ''}/calls${this.#step}`;
    this.#out.push({ kind: 'call', callId, name, args, ...(argsText !== undefined && { argsText }), parent });
  }

  #result({ callId, outcome, code, content }: Entry<'tool-result'>): void {
    this.#waiting.delete(callId);
    this.#out.push({ kind: 'result', callId, outcome, code, content });
  }

  /** The reply is over: what is not durable now never will be. */
  #settle(): void {
    this.#drop(this.#parts.filter(({ durable, said }) => durable < said.length));
    for (const part of this.#parts) this.#close(part);
    this.#parts = [];
  }
}
