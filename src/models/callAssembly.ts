/**
 * Pieces of tool calls → calls. Rule: a piece belongs to the call its id names, else to the one its index names, else
 * to the current one; a new id, or another name, opens a new call. Nothing is guessed from the arguments' text except
 * where a piece has neither id nor index.
 */
import type { Json } from '../../machines/vocabulary.ts';
import type { CallDelta } from './callDelta.ts';

export interface OpenCall {
  /** Order of first appearance, from 0. */
  readonly position: number;
  readonly id: string | undefined;
  /** '' until a piece names it. */
  readonly name: string;
  readonly args: string;
  readonly extra: { [key: string]: Json } | undefined;
}

interface AssembledCall extends OpenCall {
  /** As its first piece had it. */
  readonly index: number | undefined;
  id: string | undefined;
  name: string;
  args: string;
  extra: { [key: string]: Json } | undefined;
  /** Number of the chunk that last touched it. */
  chunk: number;
  /** The last piece of arguments ended with a brace. */
  closed: boolean;
}

export class CallAssembly {
  readonly #calls: AssembledCall[] = [];
  readonly #byId = new Map<string, AssembledCall>();
  readonly #byIndex = new Map<number, AssembledCall>();
  #current: AssembledCall | undefined;
  #chunk = 0;

  get calls(): readonly OpenCall[] {
    return this.#calls;
  }

  /** Pieces of one chunk belong together: to be called before each chunk's first piece. */
  nextChunk(): void {
    this.#chunk += 1;
  }

  /** Adds a piece and gives the call it went to. */
  add(delta: CallDelta): OpenCall {
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
      // In place: a copy for each piece would cost the square of the pieces.
      call.extra ??= {};
      Object.assign(call.extra, delta.extra);
    }
    call.chunk = this.#chunk;
    this.#current = call;
    return call;
  }

  /** The call a piece continues; undefined where it opens one. */
  #continued(delta: CallDelta): AssembledCall | undefined {
    const atIndex = delta.index === undefined ? undefined : this.#byIndex.get(delta.index);
    const found = delta.id === undefined ? this.#withoutId(delta, atIndex) : this.#withId(delta, delta.id, atIndex);
    // Two items of one chunk's list that both have a name are two calls.
    return found !== undefined && delta.name !== '' && found.chunk === this.#chunk ? undefined : found;
  }

  #withId(delta: CallDelta, id: string, atIndex: AssembledCall | undefined): AssembledCall | undefined {
    if (atIndex?.id === id) return atIndex;
    const same = this.#byId.get(id);
    // A head at another index is a second call with the same id; a mere tail there is a server that miscounts.
    const elsewhere = same !== undefined && delta.index !== undefined && delta.index !== same.index;
    if (same !== undefined) return elsewhere && delta.name !== '' ? undefined : same;
    const open = delta.index === undefined ? this.#current : atIndex;
    return open !== undefined && open.id === undefined && (delta.name === '' || open.name === '') ? open : undefined;
  }

  #withoutId(delta: CallDelta, atIndex: AssembledCall | undefined): AssembledCall | undefined {
    const open = delta.index === undefined ? this.#current : atIndex;
    if (open === undefined) return delta.name === '' ? this.#current : undefined;
    if (delta.name === '' || open.name === '') return open;
    if (delta.name !== open.name) return undefined;
    return delta.index === undefined && open.closed ? undefined : open;
  }

  #opened(index: number | undefined): AssembledCall {
    const call: AssembledCall = {
      position: this.#calls.length,
      id: undefined,
      name: '',
      args: '',
      extra: undefined,
      index,
      chunk: 0,
      closed: false,
    };
    this.#calls.push(call);
    if (index !== undefined) this.#byIndex.set(index, call);
    return call;
  }
}
