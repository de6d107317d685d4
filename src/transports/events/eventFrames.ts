/**
 * Frames of server-sent events. Invariant: `id:` is the seq of an entry; live signals have no id. Frames are encoded once
 * for all readers at the same place, and streamed text that waits together is one frame.
 */
import type { LogEntry } from '../../../machines/internal.ts';
import type { Live } from '../../live.ts';
import type { Broadcast, BroadcastItem, BroadcastLink } from './broadcast.ts';
import { joinedSignal } from './joinedSignal.ts';

export interface Frames {
  readonly bytes: Uint8Array;
  /** The same as one chunk of HTTP/1.1's chunked coding, once a socket has needed it. */
  chunk?: Uint8Array;
}

/** Frames of links. */
interface LinkFrames extends Frames {
  readonly from: BroadcastLink;
  readonly to: BroadcastLink;
  /** The seq after the last entry; 0 if there is none. */
  readonly next: number;
}

interface StoredFrames extends Frames {
  readonly first: number;
  readonly next: number;
}

/** About this much is encoded together. */
const CHUNK = 16_384;
/** The places for which frames are kept: most readers are at the last one. */
const PLACES = 4;

const encoder = new TextEncoder();
const entryFrame = (entry: LogEntry): string => `id: ${entry.seq}\nevent: entry\ndata: ${JSON.stringify(entry)}\n\n`;
export const signalFrame = (signal: Live): string => `event: live\ndata: ${JSON.stringify(signal)}\n\n`;

export const textFrames = (text: string): Frames => ({ bytes: encoder.encode(text) });

class FrameText {
  #text = '';
  #signal: Live | undefined;

  get length(): number {
    return this.#text.length + (this.#signal && 'text' in this.#signal ? this.#signal.text.length : 0);
  }

  add(item: BroadcastItem): void {
    if ('signal' in item) {
      const joined = this.#signal && joinedSignal(this.#signal, item.signal);
      if (!joined) this.#endSignal();
      this.#signal = joined ?? item.signal;
      return;
    }
    this.#endSignal();
    this.#text += entryFrame(item.entry);
  }

  encode(): Uint8Array {
    this.#endSignal();
    return encoder.encode(this.#text);
  }

  #endSignal(): void {
    if (this.#signal) this.#text += signalFrame(this.#signal);
    this.#signal = undefined;
  }
}

/** Frames of the last few places, newest first. */
const linkFrames = new WeakMap<Broadcast, LinkFrames[]>();
const logFrames = new WeakMap<Broadcast, StoredFrames[]>();

function keep<T extends Frames>(kept: WeakMap<Broadcast, T[]>, broadcast: Broadcast, frames: T): T {
  const list = kept.get(broadcast) ?? [];
  kept.set(broadcast, [frames, ...list.slice(0, PLACES - 1)]);
  return frames;
}

export function framesOf(items: readonly BroadcastItem[]): Frames {
  const text = new FrameText();
  for (const item of items) text.add(item);
  return { bytes: text.encode() };
}

/** The frames of the links after this one; undefined if there are none. */
export function framesAfter(broadcast: Broadcast, from: BroadcastLink): LinkFrames | undefined {
  if (!from.next) return undefined;
  const kept = linkFrames.get(broadcast)?.find((frames) => frames.from === from);
  // More has come since then, which a slow reader receives in one piece.
  if (kept && (!kept.to.next || kept.bytes.length >= CHUNK)) return kept;
  const text = new FrameText();
  let to = from;
  let next = 0;
  while (to.next && text.length < CHUNK) {
    to = to.next;
    if (!to.item) continue;
    text.add(to.item);
    if ('entry' in to.item) next = to.item.entry.seq + 1;
  }
  return keep(linkFrames, broadcast, { from, to, next, bytes: text.encode() });
}

/** The frames of stored entries from `first` on, at most up to `end`. */
export function storedFrames(broadcast: Broadcast, first: number, end: number): StoredFrames | undefined {
  const kept = logFrames.get(broadcast)?.find((frames) => frames.first === first && frames.next <= end);
  if (kept && (kept.next === end || kept.bytes.length >= CHUNK)) return kept;
  const text = new FrameText();
  let next = first;
  for (
    let entry = broadcast.entryAt(next);
    entry && next < end && text.length < CHUNK;
    entry = broadcast.entryAt(next)
  ) {
    text.add({ entry });
    next += 1;
  }
  return next === first ? undefined : keep(logFrames, broadcast, { first, next, bytes: text.encode() });
}
