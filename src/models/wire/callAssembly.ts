/**
 * Assembles tool calls from the pieces of servers. Invariant: a piece belongs to the call of its id, else of its
 * index, else to the current one. A new id, or another name, opens a new call. The arguments' text decides only for a
 * piece with neither id nor index.
 */
import type { Json } from '../../../machines/vocabulary.ts';
import type { ReplyWriter } from './replyWriter.ts';
import { type AssembledCall, toolCallParts } from './toolCalls.ts';

/** The size of a call besides its arguments. */
const CALL_CHARS = 256;

/** `name` and `args` are empty if they are absent. */
export interface CallDelta {
  index: number | undefined;
  id: string | undefined;
  name: string;
  args: string;
  /** Unknown fields, which are sent back with the call. */
  extra: { [key: string]: Json } | undefined;
}

interface OpenCall extends AssembledCall {
  /** The index of its first piece. */
  readonly index: number | undefined;
  id: string | undefined;
  name: string;
  args: string;
  extra: { [key: string]: Json } | undefined;
  /** The number of the last chunk with a piece of it. */
  chunk: number;
  /** The last piece of arguments ended with a brace. */
  closed: boolean;
}

export class CallAssembly {
  readonly #writer: ReplyWriter;
  readonly #extraOf: (fields: { [key: string]: Json }) => Json;
  readonly #calls: OpenCall[] = [];
  readonly #byId = new Map<string, OpenCall>();
  readonly #byIndex = new Map<number, OpenCall>();
  #current: OpenCall | undefined;
  #chunk = 0;

  /** `extraOf`: the extra of a call for the log, of its unknown fields. */
  constructor(writer: ReplyWriter, extraOf: (fields: { [key: string]: Json }) => Json = (fields) => fields) {
    this.#writer = writer;
    this.#extraOf = extraOf;
  }

  /** Call it before the first piece of each chunk: pieces of one chunk belong together. */
  nextChunk(): void {
    this.#chunk += 1;
  }

  /** Adds a piece and writes it as a delta. Throws ModelError `reply-too-large`. */
  add(delta: CallDelta): void {
    const call = this.#continued(delta) ?? this.#opened(delta.index);
    if (delta.id !== undefined && call.id === undefined) {
      call.id = delta.id;
      this.#byId.set(delta.id, call);
    }
    if (call.name === '') call.name = delta.name;
    if (delta.args !== '') {
      call.args += delta.args;
      call.closed = delta.args.trimEnd().endsWith('}');
    }
    if (delta.extra !== undefined) {
      // Changed in place: a copy for each piece would have quadratic cost.
      call.extra ??= {};
      Object.assign(call.extra, delta.extra);
    }
    call.chunk = this.#chunk;
    this.#current = call;
    this.#write(delta, call);
  }

  /** Writes the complete calls in order of first appearance, and returns their number. */
  end(): number {
    const parts = toolCallParts(this.#calls, (code, detail) => this.#writer.diagnose(code, detail));
    for (const { extra, ...part } of parts) {
      this.#writer.write(extra === undefined ? part : { ...part, extra: this.#extraOf(extra) });
    }
    return parts.length;
  }

  #write({ name, args, extra }: CallDelta, { id, position: index }: OpenCall): void {
    this.#writer.addSize(args.length + (extra === undefined ? 0 : JSON.stringify(extra).length));
    const callId = id === undefined ? {} : { callId: id };
    if (name !== '') this.#writer.write({ type: 'tool-call-delta', index, ...callId, name, text: args });
    else if (args !== '') this.#writer.write({ type: 'tool-call-delta', index, text: args });
  }

  /** Returns the call that a piece continues, or undefined if it opens one. */
  #continued(delta: CallDelta): OpenCall | undefined {
    const atIndex = delta.index === undefined ? undefined : this.#byIndex.get(delta.index);
    const candidate = delta.id === undefined ? this.#withoutId(delta, atIndex) : this.#withId(delta, delta.id, atIndex);
    // Two items of one chunk's list that both have a name are two calls.
    return candidate !== undefined && delta.name !== '' && candidate.chunk === this.#chunk ? undefined : candidate;
  }

  #withId(delta: CallDelta, id: string, atIndex: OpenCall | undefined): OpenCall | undefined {
    if (atIndex?.id === id) return atIndex;
    const same = this.#byId.get(id);
    // A piece with a name at another index is a second call with the same id. A piece without a name there comes from
    // a server that miscounts.
    const elsewhere = same !== undefined && delta.index !== undefined && delta.index !== same.index;
    if (same !== undefined) return elsewhere && delta.name !== '' ? undefined : same;
    const open = delta.index === undefined ? this.#current : atIndex;
    return open !== undefined && open.id === undefined && (delta.name === '' || open.name === '') ? open : undefined;
  }

  #withoutId(delta: CallDelta, atIndex: OpenCall | undefined): OpenCall | undefined {
    const open = delta.index === undefined ? this.#current : atIndex;
    if (open === undefined) return delta.name === '' ? this.#current : undefined;
    if (delta.name === '' || open.name === '') return open;
    if (delta.name !== open.name) return undefined;
    return delta.index === undefined && open.closed ? undefined : open;
  }

  #opened(index: number | undefined): OpenCall {
    const call: OpenCall = {
      position: this.#calls.length,
      id: undefined,
      name: '',
      args: '',
      extra: undefined,
      index,
      chunk: 0,
      closed: false,
    };
    this.#writer.addSize(CALL_CHARS);
    this.#calls.push(call);
    if (index !== undefined) this.#byIndex.set(index, call);
    return call;
  }
}
