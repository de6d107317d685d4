/**
 * Messages that were accepted and do not count yet (request-cycle-model, Queue Semantics). Rule: first in, first out;
 * the next stop promotes a wire followUp, and a message that a runtime queued waits for its own user-message.
 */
import type { QueuedMessage } from '../../machines/vocabulary.ts';
import { freezeList, List, Lookup } from './collections.ts';

interface Place {
  readonly message: QueuedMessage;
  readonly promotable: boolean;
}

/** Taken places stay empty until the queue is packed. */
export interface Queue {
  places: List<Place | undefined>;
  /** No place before it is taken. */
  head: number;
  /** No place before it is promotable. */
  promotableFrom: number;
  size: number;
  /** The view made last, until something changes. */
  view: readonly QueuedMessage[] | undefined;
  /** Message id to place; out of date where another message stands there now. */
  index: Lookup<string>;
}

const SLACK = 64;

export const emptyQueue = (owner: number): Queue => ({
  places: new List(owner),
  head: 0,
  promotableFrom: 0,
  size: 0,
  view: undefined,
  index: new Lookup(),
});

/** A queue that changes on its own from here. */
export const branchQueue = (queue: Queue): Queue => ({ ...queue, index: new Lookup(queue.index) });

/** Appends it; a message already there under this id is replaced and loses its place. Says whether there was one. */
export function enqueue(queue: Queue, owner: number, message: QueuedMessage, promotable: boolean): boolean {
  const repeated = dequeue(queue, owner, message.messageId);
  queue.index.set(message.messageId, queue.places.size);
  queue.places = queue.places.push(owner, { message, promotable });
  queue.size++;
  queue.view = undefined;
  return repeated;
}

/** Removes the message with this id. Says whether it was there. */
export function dequeue(queue: Queue, owner: number, messageId: string): boolean {
  if (queue.size === 0) return false;
  const at = queue.index.get(messageId);
  if (at === undefined || at >= queue.places.size || queue.places.at(at)?.message.messageId !== messageId) return false;
  empty(queue, owner, at);
  return true;
}

/** Takes the first message a stop promotes. */
export function promote(queue: Queue, owner: number): QueuedMessage | undefined {
  for (let at = Math.max(queue.promotableFrom, queue.head); at < queue.places.size; at++) {
    queue.promotableFrom = at + 1;
    const place = queue.places.at(at);
    if (place?.promotable) {
      empty(queue, owner, at);
      return place.message;
    }
  }
  return undefined;
}

export function queueView(queue: Queue): readonly QueuedMessage[] {
  if (queue.view !== undefined) return queue.view;
  const views: QueuedMessage[] = [];
  for (let at = queue.head; at < queue.places.size; at++) {
    const place = queue.places.at(at);
    if (place !== undefined) views.push(place.message);
  }
  queue.view = freezeList(views);
  return queue.view;
}

function empty(queue: Queue, owner: number, at: number): void {
  queue.places = queue.places.replace(owner, at, undefined);
  queue.size--;
  queue.view = undefined;
  while (queue.head < queue.places.size && queue.places.at(queue.head) === undefined) queue.head++;
  if (queue.places.size > 2 * queue.size + SLACK) pack(queue, owner);
}

function pack(queue: Queue, owner: number): void {
  const { places, head, promotableFrom } = queue;
  let packed = new List<Place | undefined>(owner);
  queue.promotableFrom = 0;
  for (let at = head; at < places.size; at++) {
    const place = places.at(at);
    if (place === undefined) continue;
    queue.index.set(place.message.messageId, packed.size);
    packed = packed.push(owner, place);
    if (at < promotableFrom) queue.promotableFrom = packed.size;
  }
  queue.places = packed;
  queue.head = 0;
}
