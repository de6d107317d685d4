/**
 * Assembles tool calls from the pieces of servers. Invariant: a piece belongs to the call of its id, else of its
 * index, else to the current one. A new id, or another name, opens a new call. The arguments' text decides only for a
 * piece with neither id nor index. Fields of a wrong type are ignored; unknown fields are kept for servers that need
 * them back. Every part has a name and a unique id, and the same bytes give the same ids.
 */
import type { Json } from '../../../machines/vocabulary.ts';
import type { ModelPart } from '../model.ts';
import { isRecord, plainCopy, type WireRecord } from '../wireJson.ts';

export interface OpenCall {
  /** Order of first appearance, from 0. */
  readonly position: number;
  readonly id: string | undefined;
  /** Empty until a piece names it. */
  readonly name: string;
  readonly args: string;
  readonly extra: { [key: string]: Json } | undefined;
}

interface AssembledCall extends OpenCall {
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
  readonly #calls: AssembledCall[] = [];
  readonly #byId = new Map<string, AssembledCall>();
  readonly #byIndex = new Map<number, AssembledCall>();
  #current: AssembledCall | undefined;
  #chunk = 0;

  get calls(): readonly OpenCall[] {
    return this.#calls;
  }

  /** Call it before the first piece of each chunk: pieces of one chunk belong together. */
  nextChunk(): void {
    this.#chunk += 1;
  }

  /** Adds a piece and returns its call. */
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
      // Changed in place: a copy for each piece would have quadratic cost.
      call.extra ??= {};
      Object.assign(call.extra, delta.extra);
    }
    call.chunk = this.#chunk;
    this.#current = call;
    return call;
  }

  /** Returns the call that a piece continues, or undefined if it opens one. */
  #continued(delta: CallDelta): AssembledCall | undefined {
    const atIndex = delta.index === undefined ? undefined : this.#byIndex.get(delta.index);
    const candidate = delta.id === undefined ? this.#withoutId(delta, atIndex) : this.#withId(delta, delta.id, atIndex);
    // Two items of one chunk's list that both have a name are two calls.
    return candidate !== undefined && delta.name !== '' && candidate.chunk === this.#chunk ? undefined : candidate;
  }

  #withId(delta: CallDelta, id: string, atIndex: AssembledCall | undefined): AssembledCall | undefined {
    if (atIndex?.id === id) return atIndex;
    const same = this.#byId.get(id);
    // A piece with a name at another index is a second call with the same id. A piece without a name there comes from
    // a server that miscounts.
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

/** `name` and `args` are empty if they are absent. */
export interface CallDelta {
  index: number | undefined;
  id: string | undefined;
  name: string;
  args: string;
  /** Unknown fields, which are sent back with the call. */
  extra: { [key: string]: Json } | undefined;
}

const EXTRA_DEPTH = 32;

/** Reads the `tool_calls` of one delta. `oddly` receives the codes of unreadable data. */
export function readCallDeltas(list: readonly unknown[], oddly: (code: string) => void): readonly CallDelta[] {
  const calls: CallDelta[] = [];
  for (const item of list) {
    if (!isRecord(item)) {
      oddly('call_not_object');
      continue;
    }
    const fn = isRecord(item.function) ? item.function : undefined;
    const extra = extraOf(item, fn);
    if (extra === null) oddly('extra_too_deep');
    calls.push({
      index: indexOf(item.index),
      id: idOf(item.id),
      name: typeof fn?.name === 'string' ? fn.name : '',
      args: argsOf(fn?.arguments),
      extra: extra ?? undefined,
    });
  }
  return calls;
}

const indexOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

function idOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns the arguments as text. Some servers send them as an object. */
function argsOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  try {
    return JSON.stringify(value);
  } catch {
    // Nested too deep to be written. This is not JSON, so the call fails instead of running with other arguments.
    return '[arguments nested too deep]';
  }
}

const KNOWN = new Set(['index', 'id', 'type', 'function', '__proto__']);
const KNOWN_OF_FUNCTION = new Set(['name', 'arguments', '__proto__']);

/** Returns the unknown fields of a call and of its `function`, or null if they are nested too deep to keep. */
function extraOf(item: WireRecord, fn: WireRecord | undefined): { [key: string]: Json } | null | undefined {
  const outer = unknownFields(item, KNOWN);
  const inner = fn === undefined ? undefined : unknownFields(fn, KNOWN_OF_FUNCTION);
  if (outer === undefined && inner === undefined) return undefined;
  const copy = plainCopy(inner === undefined ? outer : { ...outer, function: inner }, EXTRA_DEPTH);
  return copy === undefined ? null : (copy as { [key: string]: Json });
}

function unknownFields(record: WireRecord, known: ReadonlySet<string>): WireRecord | undefined {
  let unknown: { [key: string]: unknown } | undefined;
  for (const key of Object.keys(record)) {
    if (known.has(key) || record[key] === null) continue;
    unknown ??= {};
    unknown[key] = record[key];
  }
  return unknown;
}

type ToolCallPart = Extract<ModelPart, { type: 'tool-call' }>;

/** Longer ids are replaced, because every later request would repeat them. */
const ID_CHARS = 256;

/** `note` receives diagnostics: call_without_name (dropped), id_duplicate and id_too_long (renamed). */
export function completeCalls(
  calls: readonly OpenCall[],
  note: (code: string, detail?: Json) => void,
): readonly ToolCallPart[] {
  const taken = new Set<string>();
  const serverIds = new Set<string>();
  for (const { id } of calls) if (id !== undefined) serverIds.add(id);

  function ownId(call: OpenCall): string {
    const { id } = call;
    if (id !== undefined && id.length <= ID_CHARS && !taken.has(id)) return id;
    let at = call.position + 1;
    while (taken.has(`call_${at}`) || serverIds.has(`call_${at}`)) at += 1;
    const made = `call_${at}`;
    if (id !== undefined)
      note(id.length > ID_CHARS ? 'id_too_long' : 'id_duplicate', { given: id.slice(0, ID_CHARS), used: made });
    return made;
  }

  const parts: ToolCallPart[] = [];
  for (const call of calls) {
    if (call.name === '') {
      note('call_without_name', { id: call.id?.slice(0, ID_CHARS) ?? null });
      continue;
    }
    const callId = ownId(call);
    taken.add(callId);
    const part: ToolCallPart = { type: 'tool-call', callId, name: call.name, args: call.args };
    parts.push(call.extra === undefined ? part : { ...part, extra: call.extra });
  }
  return parts;
}
