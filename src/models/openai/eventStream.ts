/**
 * Turns the bytes of a `text/event-stream` body into its events. Rule: the same bytes give the same events however they
 * are cut, in linear time, and at most one event's limit is held.
 */
import { createParser } from 'eventsource-parser';
import { ModelError } from '../model.ts';

/** Bytes that may come without completing an event. */
export const EVENT_BYTES = 8 * 1024 * 1024;
/** Bytes decoded at a time, so that one huge network chunk meets the limit before it is text. */
const SLICE_BYTES = 64 * 1024;
/** Lines that are no field of an event stream, between two events. */
const STRANGE_LINES = 1000;

/** `cut`: the body ended before the blank line that completes the event, so its data may be a piece. */
type OnEvent = (data: string, name: string | undefined, cut: boolean) => void;

interface EventStream {
  push(bytes: Uint8Array): void;
  /** The body has ended. */
  end(): void;
}

/**
 * Calls `onEvent` from inside `push` and `end`; what it throws comes out of them. They throw ModelError frame-too-large
 * and bad-frame.
 */
export function eventStream(onEvent: OnEvent, limit: number = EVENT_BYTES): EventStream {
  const decoder = new TextDecoder();
  let sinceEvent = 0;
  let strangeLines = 0;
  let afterCr = false;
  let ending = false;

  const parser = createParser({
    onEvent(event) {
      sinceEvent = 0;
      strangeLines = 0;
      if (event.data.length > limit) throw tooLarge(limit);
      onEvent(event.data, event.event, ending);
    },
    onError() {
      strangeLines += 1;
      if (strangeLines > STRANGE_LINES) throw notEvents();
    },
  });

  // The parser is handed LF only: with CR it looks for both ends in every line, which is quadratic in a chunk, and a
  // CR that ends the body would stay undecided.
  function feed(text: string): void {
    let rest = text;
    if (afterCr && rest !== '') {
      if (rest.charCodeAt(0) === 10) rest = rest.slice(1);
      afterCr = false;
    }
    if (rest.includes('\r')) {
      afterCr = rest.endsWith('\r');
      rest = rest.replace(/\r\n?/g, '\n');
    }
    if (rest !== '') parser.feed(rest);
  }

  return {
    push(bytes) {
      for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
        const slice = bytes.length <= SLICE_BYTES ? bytes : bytes.subarray(at, at + SLICE_BYTES);
        sinceEvent += slice.length;
        feed(decoder.decode(slice, { stream: true }));
        if (sinceEvent > limit) throw tooLarge(limit);
      }
    },
    end() {
      ending = true;
      parser.feed('\n\n');
    },
  };
}

const CHECK = 'Check the base URL and any proxy before it.';

const tooLarge = (limit: number): ModelError =>
  new ModelError({
    code: 'frame-too-large',
    message: `the reply holds an event of more than ${limit} bytes: this is no chat completions stream. ${CHECK}`,
  });

const notEvents = (): ModelError =>
  new ModelError({
    code: 'bad-frame',
    message: `the reply is called an event stream, but ${STRANGE_LINES} lines in a row are no fields of one. ${CHECK}`,
  });
